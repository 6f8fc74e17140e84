// The fabric's side of a real network: hosts of other processes, and the messages and reports of a
// carrier.
#include "netem/fabric_state.hpp"

#include <caf/actor_cast.hpp>
#include <caf/error.hpp>
#include <caf/exit_reason.hpp>

#include <limits>

namespace shoal::netem {

caf::node_id fabric::node_of(std::string_view identity, std::uint32_t incarnation) {
  return host_table::node_of(identity, incarnation);
}

std::string fabric::identity_of(const std::string& name) const {
  return state_->identity_of(name);
}

caf::node_id fabric::node_of(host_index host) const {
  std::lock_guard guard(state_->mutex);
  return state_->hosts[host].node;
}

bool fabric::knows(const caf::node_id& node) const {
  std::lock_guard guard(state_->mutex);
  return state_->hosts.find(node) != no_host;
}

host_index fabric::host_at(const caf::node_id& node) {
  std::lock_guard guard(state_->mutex);
  return state_->host_at(node);
}

host_index fabric_state::host_at(const caf::node_id& node) {
  if (const auto known = hosts.find(node); known != no_host) return known;
  const auto first = host_table::first_of(node);
  auto machine = hosts.machine_of(first);
  if (!machine) {
    if (!places.has_regions()) places.add_region("");
    // The line of the other host is unknown, so only the line of this process limits.
    const data_rate any{std::numeric_limits<double>::max() / 1e6};
    machine = add_machine({.name = {}, .region = 0, .up = any, .down = any});
    hosts.name_machine(first, *machine);
  }
  const auto host = add_host(*machine, host_table::incarnation_in(node), node, true);
  hosts.name(host);
  return host;
}

void fabric::set_name(host_index host, const std::string& name) {
  std::lock_guard guard(state_->mutex);
  auto& s = *state_;
  auto& named = s.hosts[host];
  const auto machine = s.hosts.machine_of(host_table::node_of(name, 0));
  if (named.elsewhere && machine && *machine != named.where.machine) {
    // The scenario knows the machine by its name, and node ids are made of keys.
    const auto& m = s.places[*machine];
    named.where = {*machine, m.place};
    named.up = m.up_now;
    named.uplink = m.uplink;
    return;
  }
  s.places.set_name(named.where.machine, name);
}

void fabric::remote_died(host_index index) {
  auto& s = *state_;
  locked_section here(s.mutex);
  auto& host = s.hosts[index];
  if (!host.elsewhere || !host.alive) return;
  host.alive = false;
  host.died_at = s.flow_time(here);
  for (auto& [ordinal, address] : host.ports) here.destroy_later(std::move(address));
  host.ports.clear();
}

bool fabric::lives(endpoint actor) const {
  std::lock_guard guard(state_->mutex);
  const auto& host = state_->hosts[actor.host];
  return host.alive && host.actors.contains(actor.ordinal);
}

caf::strong_actor_ptr fabric::address_at(const caf::node_id& node, caf::actor_id number) {
  if (!host_table::is_ours(node) || number == 0 || number > 0xffffffff) return nullptr;
  std::vector<caf::strong_actor_ptr> dropped; // destroyed after the lock is released
  std::lock_guard guard(state_->mutex);
  return state_->hosts.port_at(state_->host_at(node), static_cast<std::uint32_t>(number - 1),
                               dropped);
}

void fabric::deliver(endpoint from, endpoint to, caf::mailbox_element_ptr element,
                     std::uint64_t bytes) {
  auto& s = *state_;
  const auto what = s.options.classify(element->content());
  locked_section here(s.mutex);
  const auto& host = s.hosts[to.host];
  const auto found = host.alive ? host.actors.find(to.ordinal) : host.actors.end();
  if (found == host.actors.end()) {
    ++s.lost;
    return here.destroy_later(std::move(element));
  }
  s.received[what.traffic] += bytes;
  s.report(here, event_kind::message, from, to, what.name, bytes);
  const auto actor = found->second;
  here.unlock();
  acting_as as{to.host};
  actor->enqueue(std::move(element), nullptr);
}

void fabric::gone(host_index observer, host_index of, std::optional<std::uint32_t> ordinal,
                  bool for_good) {
  struct told {
    caf::strong_actor_ptr at;
    std::uint64_t number;
  };
  auto& s = *state_;
  std::vector<told> all;
  {
    std::lock_guard guard(s.mutex);
    const auto& ports = s.hosts[of].ports;
    const auto look = [&](const caf::strong_actor_ptr& at) {
      for (const auto& each : port_at(at).observers())
        if (each.host == observer) all.push_back({at, each.number});
    };
    if (!ordinal)
      for (const auto& [number, at] : ports) look(at);
    else if (const auto found = ports.find(*ordinal); found != ports.end())
      look(found->second);
  }
  for (const auto& each : all)
    s.tell(port_at(each.at), each.number,
           for_good ? caf::error{} : caf::make_error(caf::exit_reason::unreachable));
}

} // namespace shoal::netem
