#include "scenarios/stage/faults.hpp"

#include "scenarios/schema/hosts.hpp"

namespace shoal::scenarios {

fault_engine::fault_engine(world& in, std::vector<fault> faults, std::vector<netem::machine_index> machines,
                           std::vector<std::string> names, std::function<void(netem::machine_index)> start)
    : world_(in),
      faults_(std::move(faults)),
      counts_(faults_.size()),
      machines_(std::move(machines)),
      names_(std::move(names)),
      start_(std::move(start)) {}

void fault_engine::schedule() {
  for (const auto& f : faults_) {
    if (!f.at) continue;
    world_.clock().at(*f.at, [this, &f] {
      for (std::size_t i = 0; i < names_.size(); ++i)
        if (glob_match(f.select, names_[i])) strike(f, machines_[i]);
    });
  }
}

void fault_engine::reached(netem::host_index host, std::string_view point) {
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    const auto& f = faults_[i];
    if (f.on != point || !glob_match(f.select, world_.net().name_of(host)) || !world_.net().alive(host)) continue;
    {
      std::lock_guard guard(mutex_);
      if (++counts_[i] != f.nth) continue;
    }
    strike(f, world_.net().machine_of(host));
  }
}

void fault_engine::strike(const fault& what, netem::machine_index machine) {
  auto running = world_.net().host_on(machine);
  if (what.kind == fault_kind::join) {
    if (running != netem::no_host) return;
    ++struck_;
    return start_(machine);
  }
  if (running == netem::no_host) return;
  ++struck_;
  world_.net().kill(running, what.scope == fault_scope::machine ? netem::kill_scope::machine
                                                                : netem::kill_scope::process);
  if (what.kind == fault_kind::restart)
    world_.clock().at(world_.clock().now() + what.downtime, [this, machine] {
      if (world_.net().host_on(machine) == netem::no_host) start_(machine);
    });
}

}  // namespace shoal::scenarios
