// The fabric's hosts: how they are built, how they live and die, how their lines change, and the
// queries about them.
#include "kernels/base/check.hpp"
#include "netem/fabric_state.hpp"

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/system_messages.hpp>

#include <limits>
#include <typeinfo>

namespace shoal::netem {

namespace {

caf::mailbox_element_ptr kill_message(const caf::strong_actor_ptr& actor) {
  return caf::make_mailbox_element(
      nullptr, caf::make_message_id(caf::message_priority::high), {},
      caf::exit_msg{caf::actor_cast<caf::actor_addr>(actor), caf::exit_reason::kill});
}

} // namespace

// -- building -------------------------------------------------------------------------------------

region_index fabric::add_region(std::string name) {
  std::lock_guard guard(state_->mutex);
  return state_->places.add_region(std::move(name));
}

site_index fabric::add_site(std::string name, data_rate up, data_rate down, site_index inside,
                            const std::optional<link_queue>& queue) {
  std::lock_guard guard(state_->mutex);
  const auto& before = queue ? *queue : state_->options.tcp.queue;
  const auto uplink = state_->bulk.add_link(up, before);
  const auto downlink = state_->bulk.add_link(down, before);
  return state_->places.add_site(std::move(name), uplink, downlink, inside);
}

machine_index fabric::add_machine(const machine_options& what) {
  std::lock_guard guard(state_->mutex);
  return state_->add_machine(what);
}

machine_index fabric_state::add_machine(const machine_options& what) {
  const auto& usual = options.tcp.queue;
  const auto uplink = bulk.add_link(what.up, what.up_queue.value_or(usual));
  const auto downlink = bulk.add_link(what.down, what.down_queue.value_or(usual));
  // Bytes that wait for the processor are in the host's memory, so none are dropped.
  std::optional<link_id> processor;
  if (what.serialize.bits_per_second > 0)
    processor = bulk.add_link(what.serialize, {.packets = 0, .pushes_back = true});
  const auto machine = places.add_machine(what, uplink, downlink, processor);
  if (what.nat != nat_class::open) nat();
  if (options.over != nullptr && !what.name.empty()) {
    hosts.name_machine(host_table::node_of(identity_of(what.name), 0), machine);
    // set_name() looks for the name.
    hosts.name_machine(host_table::node_of(what.name, 0), machine);
  }
  return machine;
}

host_index fabric::add_relay(const machine_options& what, std::uint64_t budget_bytes) {
  locked_section here(state_->mutex);
  auto& rules = state_->nat();
  const auto host = state_->start_host(state_->add_machine(what), {}, here);
  rules.add_relay(host, budget_bytes);
  return host;
}

nat_rules& fabric_state::nat() {
  if (!reach)
    reach = std::make_unique<nat_rules>(
        options.seed.first, options.hole_punching,
        [this](host_index a, host_index b) { return ways.delay(a, b); });
  return *reach;
}

host_index fabric_state::add_host(machine_index index, std::uint32_t incarnation, caf::node_id node,
                                  bool elsewhere) {
  const auto& m = places[index];
  const auto host = hosts.add({.where = {index, m.place},
                               .up = m.up_now,
                               .uplink = m.uplink,
                               .incarnation = incarnation,
                               .elsewhere = elsewhere,
                               .node = std::move(node),
                               .jitter = stream(options.seed, "netem.jitter", index, incarnation)});
  if (reach) reach->add(host, index, m.nat);
  return host;
}

host_index fabric::start_host(machine_index machine, std::optional<std::uint32_t> incarnation) {
  locked_section here(state_->mutex);
  return state_->start_host(machine, incarnation, here);
}

host_index fabric_state::start_host(machine_index machine, std::optional<std::uint32_t> given,
                                    locked_section& here) {
  SHOAL_CHECK(hosts.running(machine) == no_host, "a machine runs one incarnation at a time");
  const auto incarnation = hosts.next_incarnation(machine, given);
  const auto host =
      add_host(machine, incarnation,
               host_table::node_of(identity_of(places[machine].name), incarnation), false);
  hosts.set_running(machine, host);
  if (options.over != nullptr) hosts.name(host);
  report(here, event_kind::host_started, {host, 0}, {host, 0}, "");
  return host;
}

bool fabric::kill(host_index index, kill_scope scope) {
  auto& s = *state_;
  locked_section here(s.mutex);
  auto& host = s.hosts[index];
  if (!host.alive) return false;
  const auto now = s.flow_time(here);
  host.alive = false;
  host.died_by = scope;
  host.died_at = now;
  s.hosts.set_running(host.where.machine, no_host);
  if (s.reach) s.reach->forget(index);
  here.report({event_kind::host_killed, now, now, {index, 0}, {index, 0}, "", 0});
  fabric_state::bulk_effects around(s, here);
  s.bulk.break_lines_of(index, now, around);
  for (const auto& pair : s.failures.blocked_pairs_of(index))
    for (const auto message : pair.small) s.lose(message, s.lost, here);
  std::vector<caf::strong_actor_ptr> actors;
  for (const auto& [ordinal, actor] : host.actors) actors.push_back(actor);
  const auto waited = s.failures.end_pause_by_death(index);
  here.unlock();
  acting_as as{index};
  for (const auto& actor : actors) actor->enqueue(kill_message(actor), nullptr);
  // The host is released after the kill messages are queued, so that no actor handles another
  // message first.
  if (waited) s.clock.release(index);
  if (s.options.over != nullptr) s.options.over->killed(index, scope);
  return true;
}

// -- changes at run time ----------------------------------------------------------------

void fabric::set_path(region_index a, region_index b, const path_quality& path) {
  auto& s = *state_;
  locked_section here(s.mutex);
  s.places.set_path(a, b, path);
  if (s.bulk.sending() == 0) return;
  fabric_state::bulk_effects around(s, here);
  s.bulk.retune_all(s.flow_time(here), around);
}

void fabric::set_rates(machine_index machine, data_rate up, data_rate down) {
  auto& s = *state_;
  locked_section here(s.mutex);
  const auto& m = s.places[machine];
  const auto now = s.flow_time(here);
  s.places.set_rate_up(machine, up);
  if (const auto host = s.hosts.running(machine); host != no_host) s.hosts[host].up = up;
  fabric_state::bulk_effects around(s, here);
  s.bulk.set_capacities(m.uplink, up, m.downlink, down, now, around);
}

void fabric::set_rates_of_site(site_index site, data_rate up, data_rate down) {
  auto& s = *state_;
  locked_section here(s.mutex);
  const auto now = s.flow_time(here);
  fabric_state::bulk_effects around(s, here);
  s.bulk.set_capacities(s.places.uplink_of_site(site), up, s.places.downlink_of_site(site), down,
                        now, around);
}

void fabric::set_line(machine_index machine, const path_quality& out, const path_quality& in) {
  auto& s = *state_;
  locked_section here(s.mutex);
  const auto place = s.places.use_line(machine, out, in);
  const auto host = s.hosts.running(machine);
  if (host == no_host) return;
  s.hosts[host].where.place = place;
  if (!s.bulk.busy(host)) return;
  fabric_state::bulk_effects around(s, here);
  s.bulk.retune(host, s.flow_time(here), around);
}

// -- queries about hosts -------------------------------------------------------------------------

bool fabric::alive(host_index host) const {
  std::lock_guard guard(state_->mutex);
  return host < state_->hosts.size() && state_->hosts[host].alive;
}
std::uint32_t fabric::incarnation(host_index host) const {
  std::lock_guard guard(state_->mutex);
  return state_->hosts[host].incarnation;
}
machine_index fabric::machine_of(host_index host) const {
  std::lock_guard guard(state_->mutex);
  return state_->hosts[host].where.machine;
}
kill_scope fabric::died_by(host_index host) const {
  std::lock_guard guard(state_->mutex);
  return state_->hosts[host].died_by;
}
std::string fabric::name_of(host_index host) const {
  std::lock_guard guard(state_->mutex);
  return state_->places[state_->hosts[host].where.machine].name;
}
data_rate fabric::rate_up(host_index host) const {
  std::lock_guard guard(state_->mutex);
  return state_->places[state_->hosts[host].where.machine].up;
}
data_rate fabric::rate_down(host_index host) const {
  std::lock_guard guard(state_->mutex);
  return state_->places[state_->hosts[host].where.machine].down;
}
host_index fabric::host_on(machine_index machine) const {
  std::lock_guard guard(state_->mutex);
  return state_->hosts.running(machine);
}
std::size_t fabric::active_flows() const {
  std::lock_guard guard(state_->mutex);
  return state_->bulk.sending();
}
std::size_t fabric::orphaned_flows() const {
  std::lock_guard guard(state_->mutex);
  return state_->bulk.orphaned();
}
std::size_t fabric::live_actors(host_index host) const {
  std::lock_guard guard(state_->mutex);
  return state_->hosts[host].actors.size();
}
std::string fabric::name_of(link_id link) const {
  std::lock_guard guard(state_->mutex);
  return state_->places.name_of(link);
}
duration fabric::delay_between(host_index from, host_index to) const {
  std::lock_guard guard(state_->mutex);
  return state_->ways.delay(from, to);
}

fabric::dial_outcome fabric::dial(host_index from, host_index to) const {
  const auto& s = *state_;
  std::lock_guard guard(state_->mutex);
  if (from >= s.hosts.size() || to >= s.hosts.size()) return {};
  const auto& called = s.hosts[to];
  const bool opens =
      s.hosts[from].alive && called.alive && s.places[called.where.machine].nat == nat_class::open;
  return {opens, s.ways.round_trip(from, to)};
}
nat_class fabric::nat_of(host_index host) const {
  std::lock_guard guard(state_->mutex);
  return state_->places[state_->hosts[host].where.machine].nat;
}
std::uint64_t fabric::public_address(host_index of, host_index by) const {
  const auto& s = *state_;
  std::lock_guard guard(state_->mutex);
  if (of >= s.hosts.size()) return 0;
  return s.reach ? s.reach->address_of(of, by) : std::uint64_t{s.hosts[of].where.machine} + 1;
}
bool fabric::relay_left() const {
  std::lock_guard guard(state_->mutex);
  return state_->reach && state_->reach->relay_left();
}
std::optional<nat_counts> fabric::nat_totals() const {
  std::lock_guard guard(state_->mutex);
  return state_->reach ? std::optional(state_->reach->counts()) : std::nullopt;
}

// -- actors ---------------------------------------------------------------------------------------

void fabric_state::actor_born(host_index host, const caf::strong_actor_ptr& actor) {
  locked_section here(mutex);
  hosts.born(host, actor);
  const bool alive = hosts[host].alive;
  here.unlock();
  // An actor that was killed while it ran a handler may have spawned this actor.
  if (!alive) actor->enqueue(kill_message(actor), nullptr);
}

void fabric::tamper(host_index host) {
  std::lock_guard guard(state_->mutex);
  state_->hosts[host].tampers = true;
}

host_index fabric::host_of(const caf::actor& actor) const {
  auto* it = caf::actor_cast<caf::abstract_actor*>(actor);
  if (it == nullptr) return no_host;
  if (typeid(*it) == typeid(port)) return static_cast<port*>(it)->host(); // the class is final
  std::lock_guard guard(state_->mutex);
  const auto* found = state_->hosts.find(actor.id());
  return found != nullptr ? found->where.host : no_host;
}

caf::actor fabric::address_of(const caf::actor& actor) {
  const auto local = caf::actor_cast<caf::strong_actor_ptr>(actor);
  std::lock_guard guard(state_->mutex);
  const auto out = state_->hosts.port_of(local);
  return out ? caf::actor_cast<caf::actor>(out) : caf::actor{};
}

} // namespace shoal::netem
