#include "netem/fabric.hpp"

#include <algorithm>
#include <cmath>

#include <caf/actor_cast.hpp>
#include <caf/detail/serialized_size.hpp>
#include <caf/error.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>

#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"
#include "netem/thread_sanitizer.hpp"

namespace shoal::netem {

namespace {

constexpr std::uint64_t framing_bytes = 32;
constexpr std::uint64_t segment_bytes = 1448;
constexpr std::uint64_t segment_header_bytes = 40;
/// A connection without bulk for so long is closed; the next bulk opens another (model `tcp`).
constexpr duration idle_connection = std::chrono::seconds(60);

std::uint64_t key_of(host_index from, host_index to) { return (std::uint64_t{from} << 32) | to; }

const caf::node_id::default_data* data_of(const caf::node_id& node) {
  return node ? dynamic_cast<const caf::node_id::default_data*>(&*node) : nullptr;
}

caf::mailbox_element_ptr kill_message(const caf::strong_actor_ptr& actor) {
  return caf::make_mailbox_element(nullptr, caf::make_message_id(caf::message_priority::high), {},
                                   caf::exit_msg{caf::actor_cast<caf::actor_addr>(actor), caf::exit_reason::kill});
}

duration transmission_time(std::uint64_t bytes, data_rate rate) {
  return from_seconds(static_cast<double>(bytes) / rate.bytes_per_second());
}

}  // namespace

caf::node_id fabric::node_of(const std::string& name, std::uint32_t incarnation) {
  auto hash = hash_of(std::as_bytes(std::span(name)));
  caf::node_id::default_data::host_id_type host;
  std::copy_n(hash.bytes.begin(), host.size(), host.begin());
  return caf::node_id{caf::make_counted<caf::node_id::default_data>(incarnation + 1, host)};  // CAF takes 0 for none
}

fabric::fabric(caf::actor_system& system, fabric_options options)
    : system_(system),
      clock_(coordinator::of(system)),
      options_(std::move(options)),
      flows_(options_.model, options_.tcp),
      reporting_(static_cast<bool>(options_.on_event)) {
  clock_.on_actor([this](host_index host, const caf::strong_actor_ptr& actor) { actor_born(host, actor); },
                  [this](caf::actor_id id) { actor_ended(id, {}); });
  clock_.before_time_moves([this] { settle(); });
  if (options_.on_transfer)
    flows_.on_rate([this](const rate_change& what) {
      auto& record = connections_[what.tag].record;
      if (record) record->steps.push_back({what.at, what.bits_per_second, what.why, what.link, what.sharers});
    });
  clock_.on_timer([this](caf::actor_id id, const caf::type_erased_tuple& content) {
    if (!reporting_) return;
    std::lock_guard guard(mutex_);
    auto* found = actors_.find(id);
    if (found == nullptr) return;
    auto now = clock_.now();
    report({event_kind::timer, now, now, found->where, found->where,
            options_.classify(content).name, 0});
  });
}

fabric::~fabric() {
  stop_reporting();
  for (host_index host = 0; host < hosts_.size(); ++host)
    if (!hosts_[host].elsewhere) kill(host, kill_scope::process);
  clock_.settle();
  {
    // What is under way may hold the last reference to an actor: it goes while the coordinator can clean up.
    std::vector<in_transit> dropped;
    decltype(held_) held;
    std::lock_guard guard(mutex_);  // released before what was dropped is destroyed
    dropped.swap(in_flight_);
    held.swap(held_);
    in_flight_free_.clear();
  }
  clock_.stop();
  link_->store(nullptr);
  clock_.on_actor({}, {});
  clock_.before_time_moves({});
  clock_.on_timer({});
}

// -- building -------------------------------------------------------------------------------------

region_index fabric::add_region(std::string name) {
  std::lock_guard guard(mutex_);
  regions_.push_back(std::move(name));
  between_.resize(regions_.size());
  for (auto& row : between_) row.resize(regions_.size());
  return static_cast<region_index>(regions_.size() - 1);
}

void fabric::set_path(region_index a, region_index b, const path_quality& path) {
  std::lock_guard guard(mutex_);
  between_[a][b] = between_[b][a] = path;
  for (std::size_t i = 0; i < places_.size(); ++i)
    for (std::size_t j = 0; j < places_.size(); ++j) ways_[i][j] = combine(places_[i], places_[j]);
  if (sending_ == 0) return;
  const auto now = flow_time();
  for (std::uint32_t line = 0; line < connections_.size(); ++line) retune(line, now);
}

site_index fabric::add_site(std::string name, data_rate up, data_rate down, site_index inside) {
  std::lock_guard guard(mutex_);
  const auto depth = inside == no_site ? 0 : sites_[inside].depth + 1;
  SHOAL_CHECK(depth < 3, "sites nest at most three deep");
  const auto index = static_cast<site_index>(sites_.size());
  sites_.push_back({std::move(name), flows_.add_link(up.bits_per_second), flows_.add_link(down.bits_per_second),
                    inside, depth});
  link_owners_.push_back(2 * ~index);
  link_owners_.push_back(2 * ~index + 1);
  return index;
}

machine_index fabric::add_machine(const machine_options& what) {
  std::lock_guard guard(mutex_);
  const auto index = static_cast<machine_index>(machines_.size());
  const auto where = place_of({what.region, what.line, what.line});
  ++places_[where].users;
  machines_.push_back({what.name, where, what.up, what.down,
                       flows_.add_link(what.up.bits_per_second), flows_.add_link(what.down.bits_per_second),
                       what.site, what.nat, 0, no_host, what.up});
  if (what.nat != nat_class::open) nat_rules();
  if (options_.over != nullptr && !what.name.empty()) machines_by_node_[node_of(what.name, 0)] = index;
  link_owners_.push_back(2 * index);
  link_owners_.push_back(2 * index + 1);
  if (what.at || !coordinates_.empty()) {
    coordinates_.resize(index, {std::numeric_limits<double>::quiet_NaN(), 0, 0});
    coordinates_.push_back(what.at.value_or(coordinates{std::numeric_limits<double>::quiet_NaN(), 0, 0}));
  }
  return index;
}

host_index fabric::add_relay(const machine_options& what, std::uint64_t budget_bytes) {
  std::lock_guard guard(mutex_);
  nat_rules();
  const auto host = start_host(add_machine(what));
  reach_->add_relay(host, budget_bytes);
  return host;
}

reachability& fabric::nat_rules() {
  if (!reach_)
    reach_ = std::make_unique<reachability>(options_.seed, options_.hole_punching,
                                            [this](host_index a, host_index b) { return delay_of(a, b); });
  return *reach_;
}

std::uint32_t fabric::place_of(const place& what) {
  const auto same = [&](const place& p) {
    return p.users > 0 && p.region == what.region && p.out == what.out && p.in == what.in;
  };
  const auto found = std::find_if(places_.rbegin(), places_.rend(), same);
  if (found != places_.rend()) return static_cast<std::uint32_t>(places_.rend() - found) - 1;
  auto free = std::find_if(places_.begin(), places_.end(), [](const place& p) { return p.users == 0; });
  if (free == places_.end()) {
    free = places_.insert(free, what);
    ways_.resize(places_.size());
    for (auto& row : ways_) row.resize(places_.size());
  }
  *free = what;
  free->users = 0;
  const auto index = static_cast<std::uint32_t>(free - places_.begin());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    ways_[i][index] = combine(places_[i], what);
    ways_[index][i] = combine(what, places_[i]);
  }
  return index;
}

fabric::way fabric::combine(const place& from, const place& to) const {
  way out;
  out.lines = from.out.delay + to.in.delay;
  out.quality = in_series({&between_[from.region][to.region], &from.out, &to.in});
  out.remembers = out.quality.correlation > 0 || out.quality.loss.bursts();
  return out;
}

host_index fabric::add_host(machine_index index, std::uint32_t incarnation, caf::node_id node) {
  const auto& m = machines_[index];
  const auto host = static_cast<host_index>(hosts_.size());
  hosts_.push_back({.machine = index,
                    .place = m.place,
                    .up = m.up_now,
                    .uplink = m.uplink,
                    .downlink = m.downlink,
                    .incarnation = incarnation,
                    .node = std::move(node),
                    .jitter = stream(options_.seed, "netem.jitter", index, incarnation)});
  if (reach_) reach_->add(host, index, m.nat);
  return host;
}

host_index fabric::start_host(machine_index index, std::optional<std::uint32_t> given) {
  std::lock_guard guard(mutex_);
  auto& m = machines_[index];
  SHOAL_CHECK(m.running == no_host, "a machine runs one incarnation at a time");
  auto incarnation = given.value_or(m.incarnations);
  m.incarnations = incarnation + 1;
  m.running = add_host(index, incarnation, node_of(m.name, incarnation));
  if (options_.over != nullptr) hosts_by_node_[hosts_.back().node] = m.running;
  report({event_kind::host_started, clock_.now(), clock_.now(), {m.running, 0}, {m.running, 0}, "", 0});
  return m.running;
}

bool fabric::kill(host_index index, kill_scope scope) {
  std::unique_lock guard(mutex_);
  auto& host = hosts_[index];
  if (!host.alive) return false;
  auto now = flow_time();
  host.alive = false;
  host.died_by = scope;
  host.died_at = now;
  machines_[host.machine].running = no_host;
  if (reach_) reach_->forget(index);
  report({event_kind::host_killed, now, now, {index, 0}, {index, 0}, "", 0});
  std::vector<std::uint32_t> broken;
  for (auto at = host.first_out; at != none; at = connections_[at].out.next) broken.push_back(at);
  for (auto at = host.first_in; at != none; at = connections_[at].in.next) broken.push_back(at);
  // In an order that does not depend on how they were listed.
  std::sort(broken.begin(), broken.end(), [this](std::uint32_t a, std::uint32_t b) {
    return key_of(connections_[a].from, connections_[a].to) < key_of(connections_[b].from, connections_[b].to);
  });
  for (auto at : broken) break_line(at, now, lost_);
  std::erase_if(stalls_, [&](auto& entry) {
    if (entry.first >> 32 != index && (entry.first & 0xffffffff) != index) return false;
    for (auto at : entry.second.small) {
      ++lost_;
      in_flight_[at] = {};
      in_flight_free_.push_back(at);
    }
    return true;
  });
  acting_as as{index};
  for (auto& [ordinal, actor] : host.actors) actor->enqueue(kill_message(actor), nullptr);
  // Only now: nobody may handle anything before the end that is urgent.
  if (std::exchange(host.paused, false)) {
    when_resumed_.erase(index);
    clock_.release(index);
  }
  if (options_.over == nullptr) return true;
  guard.unlock();
  options_.over->killed(index, scope);
  return true;
}

/// Loses all bulk that has not left.
void fabric::break_line(std::uint32_t at, duration now, std::atomic<std::uint64_t>& count) {
  auto& line = connections_[at];
  if (line.first == none) return;
  flows_.cancel(line.flow, now);
  end_record(line, now, now, true);
  for (auto next = line.first; next != none;) {
    ++count;
    auto lost = std::exchange(in_flight_[next], {});
    in_flight_free_.push_back(std::exchange(next, lost.next));
  }
  line.first = line.last = none;
  line.stopped = false;
  link_out(at);
  forget_if_idle(at);
  flows_change();
}

// -- for the carrier ------------------------------------------------------------------------------

caf::node_id fabric::node_of(host_index host) const {
  std::lock_guard guard(mutex_);
  return hosts_[host].node;
}

bool fabric::knows(const caf::node_id& node) const {
  std::lock_guard guard(mutex_);
  return hosts_by_node_.contains(node);
}

host_index fabric::host_at(const caf::node_id& node) {
  std::lock_guard guard(mutex_);
  const auto [found, fresh] = hosts_by_node_.try_emplace(node, static_cast<host_index>(hosts_.size()));
  if (!fresh) return found->second;
  const auto* id = data_of(node);
  const auto incarnation = id != nullptr ? id->process_id() - 1 : 0;
  auto first = id != nullptr ? caf::node_id{caf::make_counted<caf::node_id::default_data>(1, id->host_id())} : node;
  auto [machine, unknown] = machines_by_node_.try_emplace(std::move(first));
  if (unknown) {
    if (regions_.empty()) add_region("");
    // Nobody said what its line is like: that of this process is what counts then.
    const data_rate any{std::numeric_limits<double>::max() / 1e6};
    machine->second = add_machine({.name = {}, .region = 0, .up = any, .down = any});
  }
  hosts_[add_host(machine->second, incarnation, node)].elsewhere = true;
  return found->second;
}

void fabric::set_name(host_index host, const std::string& name) {
  std::lock_guard guard(mutex_);
  auto& known = machines_[hosts_[host].machine].name;
  if (known.empty()) known = name;
}

void fabric::remote_died(host_index index) {
  std::lock_guard guard(mutex_);
  auto& host = hosts_[index];
  if (!host.elsewhere || !host.alive) return;
  host.alive = false;
  host.died_at = flow_time();
  host.ports.clear();
}

bool fabric::lives(endpoint actor) const {
  std::lock_guard guard(mutex_);
  return hosts_[actor.host].alive && hosts_[actor.host].actors.contains(actor.ordinal);
}

/// Requires: a carrier. The lock is held.
caf::strong_actor_ptr fabric::port_at(host_index index, std::uint32_t ordinal) {
  auto& host = hosts_[index];
  if (!host.elsewhere)
    if (const auto found = host.actors.find(ordinal); found != host.actors.end()) return port_of(found->second);
  if (const auto found = host.ports.find(ordinal); found != host.ports.end()) return found->second;
  caf::actor_config config;
  auto out = caf::make_actor<port, caf::strong_actor_ptr>(caf::actor_id{ordinal} + 1, host.node, &system_, config, link_,
                                                          caf::strong_actor_ptr{}, index, ordinal);
  if (host.elsewhere && host.alive) {
    if (host.ports.size() >= host.sweep_at) sweep(host);
    host.ports.emplace(ordinal, out);
  }
  return out;
}

void fabric::sweep(host_state& host) {
  std::erase_if(host.ports, [](const auto& entry) {
    return entry.second->strong_refs == 1 &&
           static_cast<port*>(caf::actor_cast<caf::abstract_actor*>(entry.second))->observers_.empty();
  });
  host.sweep_at = std::max<std::size_t>(64, 2 * host.ports.size());
}

caf::strong_actor_ptr fabric::address_at(const caf::node_id& node, caf::actor_id number) {
  const auto* id = data_of(node);
  // Also what CAF itself takes for no node: a process or a machine of zeros.
  if (id == nullptr || !id->valid() || number == 0 || number > 0xffffffff) return nullptr;
  std::lock_guard guard(mutex_);
  return port_at(host_at(node), static_cast<std::uint32_t>(number - 1));
}

void fabric::deliver(endpoint from, endpoint to, caf::mailbox_element_ptr element, std::uint64_t bytes) {
  const auto what = options_.classify(element->content());
  std::unique_lock guard(mutex_);
  auto& host = hosts_[to.host];
  const auto found = host.alive ? host.actors.find(to.ordinal) : host.actors.end();
  if (found == host.actors.end()) {
    ++lost_;
    guard.unlock();  // before what is lost is destroyed
    return;
  }
  received_[what.traffic] += bytes;
  const auto now = clock_.now();
  report({event_kind::message, now, now, from, to, what.name, bytes});
  auto actor = found->second;
  guard.unlock();
  acting_as as{to.host};
  actor->enqueue(std::move(element), nullptr);
}

void fabric::gone(host_index observer, host_index of, std::optional<std::uint32_t> ordinal, bool for_good) {
  struct told {
    caf::strong_actor_ptr at;
    std::uint64_t number;
  };
  std::vector<told> all;
  {
    std::lock_guard guard(mutex_);
    auto& host = hosts_[of];
    const auto look = [&](const caf::strong_actor_ptr& at) {
      for (const auto& each : static_cast<port*>(caf::actor_cast<caf::abstract_actor*>(at))->observers_)
        if (each.host == observer) all.push_back({at, each.number});
    };
    if (!ordinal)
      for (const auto& [number, at] : host.ports) look(at);
    else if (const auto found = host.ports.find(*ordinal); found != host.ports.end())
      look(found->second);
  }
  for (const auto& each : all)
    tell(*static_cast<port*>(caf::actor_cast<caf::abstract_actor*>(each.at)), each.number,
         for_good ? caf::error{} : caf::make_error(caf::exit_reason::unreachable));
}

// -- what changes while it is used ----------------------------------------------------------------

void fabric::set_rates(machine_index index, data_rate up, data_rate down) {
  std::lock_guard guard(mutex_);
  auto& m = machines_[index];
  const auto now = flow_time();
  m.up_now = up;
  flows_.set_capacity(m.uplink, up.bits_per_second, now);
  flows_.set_capacity(m.downlink, down.bits_per_second, now);
  if (m.running != no_host) hosts_[m.running].up = up;
  flows_change();
}

void fabric::set_rates_of_site(site_index site, data_rate up, data_rate down) {
  std::lock_guard guard(mutex_);
  const auto now = flow_time();
  flows_.set_capacity(sites_[site].uplink, up.bits_per_second, now);
  flows_.set_capacity(sites_[site].downlink, down.bits_per_second, now);
  flows_change();
}

void fabric::set_line(machine_index index, const path_quality& out, const path_quality& in) {
  std::lock_guard guard(mutex_);
  auto& m = machines_[index];
  --places_[m.place].users;
  m.place = place_of({places_[m.place].region, out, in});
  ++places_[m.place].users;
  if (m.running == no_host) return;
  auto& host = hosts_[m.running];
  host.place = m.place;
  if (host.first_out == none && host.first_in == none) return;
  const auto now = flow_time();
  for (auto at = host.first_out; at != none; at = connections_[at].out.next) retune(at, now);
  for (auto at = host.first_in; at != none; at = connections_[at].in.next) retune(at, now);
}

path_now fabric::path_of(host_index from, host_index to, host_index relay) const {
  const bool direct = relay == no_host;
  const auto quality = direct ? way_between(from, to).quality
                              : netem::in_series({&way_between(from, relay).quality, &way_between(relay, to).quality});
  path_now out;
  out.cap = quality.flow_cap;
  if (flows_.model() == transfer_model::max_min) return out;
  const auto one_way = [&](host_index a, host_index b) { return direct ? delay_of(a, b) : delay_of(a, relay) + delay_of(relay, b); };
  out.delay = one_way(from, to);
  out.round_trip = out.delay + one_way(to, from);
  out.loss_events = quality.loss.event_rate();
  return out;
}

void fabric::retune(std::uint32_t index, duration now) {
  const auto& line = connections_[index];
  if (line.first == none || line.stopped) return;
  flows_.change(line.flow, path_of(line.from, line.to, in_flight_[line.first].relay), now);
  flows_change();
}

// Cuts.

/// Over `relay`, if there is one.
bool fabric::blocked(host_index from, host_index to, host_index relay) const {
  if (relay != no_host) return blocked(from, relay) || blocked(relay, to);
  return std::any_of(cuts_.begin(), cuts_.end(), [&](const active_cut& c) {
    return c.what.blocks(hosts_[from].machine, hosts_[to].machine);
  });
}

std::uint64_t fabric::add_cut(cut what) {
  std::lock_guard guard(mutex_);
  const auto now = flow_time();
  cuts_.push_back({next_number_++, std::move(what), now});
  for (std::uint32_t line = 0; line < connections_.size(); ++line) {
    const auto& c = connections_[line];
    if (c.first != none && blocked(c.from, c.to, in_flight_[c.first].relay)) stop_line(line, now);
  }
  clock_.at(now + options_.detection_time, [this] { suspect(); });
  return cuts_.back().number;
}

void fabric::heal(std::uint64_t number) {
  std::lock_guard guard(mutex_);
  std::erase_if(cuts_, [&](const active_cut& c) { return c.number == number; });
  for (auto at = stalls_.begin(); at != stalls_.end();) {
    const auto [pair, what] = *at;
    if (blocked(static_cast<host_index>(pair >> 32), static_cast<host_index>(pair), what.relay)) {
      ++at;
      continue;
    }
    at = stalls_.erase(at);
    go_on(pair, what);
  }
}

/// The stall of a pair; the first thing that waits starts the detection time.
fabric::stall& fabric::stall_of(host_index from, host_index to, host_index relay) {
  const auto pair = key_of(from, to);
  const auto [found, fresh] = stalls_.try_emplace(pair);
  if (fresh) {
    found->second.number = next_number_++;
    found->second.since = clock_.now();
    found->second.relay = relay;
    clock_.at(clock_.now() + options_.detection_time, [this, pair, number = found->second.number] { give_up(pair, number); });
  }
  return found->second;
}

void fabric::stop_line(std::uint32_t index, duration now) {
  auto& line = connections_[index];
  stall_of(line.from, line.to, in_flight_[line.first].relay);
  if (std::exchange(line.stopped, true)) return;
  flows_.stop(line.flow, now);
  flows_change();
}

void fabric::give_up(std::uint64_t pair, std::uint64_t number) {
  std::lock_guard guard(mutex_);
  const auto found = stalls_.find(pair);
  if (found == stalls_.end() || found->second.number != number) return;
  const auto what = std::move(found->second);
  stalls_.erase(found);
  for (auto at : what.small) {
    ++given_up_;
    in_flight_[at] = {};
    in_flight_free_.push_back(at);
  }
  windows_.erase(pair);  // what comes next is another connection
  if (auto* line = line_of_.find(pair)) break_line(*line - 1, flow_time(), given_up_);
}

/// What waited is sent again at the next retransmission, the timeout doubling from one to the next.
void fabric::go_on(std::uint64_t pair, stall what) {
  const auto from = static_cast<host_index>(pair >> 32), to = static_cast<host_index>(pair);
  const auto now = clock_.now();
  auto again = now;
  if (flows_.model() == transfer_model::tcp) {
    const auto timeout = retransmission_timeout(flows_.tcp(), delay_of(from, to) + delay_of(to, from));
    auto wait = timeout;
    while (what.since + wait < now) wait = 2 * wait + timeout;
    again = what.since + wait;
  }
  for (auto at : what.small) {
    in_flight_[at].left = again;
    arrive_later(at, last_small(from, to), drawn_delay(from, what.relay, to));
  }
  const auto* line = line_of_.find(pair);
  if (line == nullptr || !connections_[*line - 1].stopped) return;
  clock_.at(again, [this, index = *line - 1, flow = connections_[*line - 1].flow] {
    std::lock_guard guard(mutex_);
    auto& sent = connections_[index];
    if (sent.first == none || sent.flow != flow || !sent.stopped) return;
    const auto relay = in_flight_[sent.first].relay;
    if (blocked(sent.from, sent.to, relay)) return;
    sent.stopped = false;
    flows_.go_on(sent.flow, path_of(sent.from, sent.to, relay), flow_time());
    flows_change();
  });
}

// Suspicion: who gives no sign of life for the detection time is taken for dead.

bool fabric::silent_for(host_index a, host_index b, duration time) const {
  const auto before = clock_.now() - time;
  if (hosts_[b].paused && hosts_[b].paused_at <= before) return true;
  return std::any_of(cuts_.begin(), cuts_.end(), [&](const active_cut& c) {
    return c.since <= before && (c.what.blocks(hosts_[a].machine, hosts_[b].machine) ||
                                 c.what.blocks(hosts_[b].machine, hosts_[a].machine));
  });
}

void fabric::suspect() {
  struct suspicion {
    endpoint of;
    std::uint64_t observer;
    caf::strong_actor_ptr at;
  };
  std::vector<suspicion> told;
  {
    std::lock_guard guard(mutex_);
    actors_.for_each([&](std::uint64_t, const actor_state& actor) {
      if (!actor.port) return;
      const auto& of = *static_cast<port*>(caf::actor_cast<caf::abstract_actor*>(actor.port));
      for (const auto& observer : of.observers_)
        if (observer.host != no_host && observer.host != of.host() && silent_for(observer.host, of.host(), options_.detection_time))
          told.push_back({actor.where, observer.number, actor.port});
    });
  }
  std::sort(told.begin(), told.end(), [](const suspicion& a, const suspicion& b) {
    return std::tuple(a.of.host, a.of.ordinal, a.observer) < std::tuple(b.of.host, b.of.ordinal, b.observer);
  });
  for (const auto& s : told)
    tell(*static_cast<port*>(caf::actor_cast<caf::abstract_actor*>(s.at)), s.observer,
         caf::make_error(caf::exit_reason::unreachable));
}

// Pauses.

bool fabric::pause(host_index index) {
  std::lock_guard guard(mutex_);
  auto& host = hosts_[index];
  if (!host.alive || host.paused) return false;
  host.paused = true;
  host.paused_at = clock_.now();
  clock_.hold(index);
  clock_.at(host.paused_at + options_.detection_time, [this] { suspect(); });
  return true;
}

bool fabric::resume(host_index index) {
  std::vector<std::function<void()>> waiting;
  {
    std::lock_guard guard(mutex_);
    auto& host = hosts_[index];
    if (!host.paused) return false;
    host.paused = false;
    host.paused_for += clock_.now() - host.paused_at;
    if (const auto found = when_resumed_.find(index); found != when_resumed_.end()) {
      waiting = std::move(found->second);
      when_resumed_.erase(found);
    }
  }
  clock_.release(index);
  for (auto& action : waiting) action();
  return true;
}

bool fabric::paused(host_index host) const {
  std::lock_guard guard(mutex_);
  return hosts_[host].paused;
}

duration fabric::paused_time(host_index index) const {
  std::lock_guard guard(mutex_);
  const auto& host = hosts_[index];
  return host.paused_for + (host.paused ? clock_.now() - host.paused_at : duration{});
}

void fabric::when_resumed(host_index host, std::function<void()> action) {
  std::unique_lock guard(mutex_);
  if (hosts_[host].paused) return when_resumed_[host].push_back(std::move(action));
  if (!hosts_[host].alive) return;
  guard.unlock();
  action();
}

// -- what hosts look like -------------------------------------------------------------------------

bool fabric::alive(host_index host) const {
  std::lock_guard guard(mutex_);
  return host < hosts_.size() && hosts_[host].alive;
}
std::uint32_t fabric::incarnation(host_index host) const {
  std::lock_guard guard(mutex_);
  return hosts_[host].incarnation;
}
machine_index fabric::machine_of(host_index host) const {
  std::lock_guard guard(mutex_);
  return hosts_[host].machine;
}
kill_scope fabric::died_by(host_index host) const {
  std::lock_guard guard(mutex_);
  return hosts_[host].died_by;
}
const std::string& fabric::name_of(host_index host) const {
  std::lock_guard guard(mutex_);
  return machines_[hosts_[host].machine].name;
}
data_rate fabric::rate_up(host_index host) const {
  std::lock_guard guard(mutex_);
  return machines_[hosts_[host].machine].up;
}
data_rate fabric::rate_down(host_index host) const {
  std::lock_guard guard(mutex_);
  return machines_[hosts_[host].machine].down;
}
host_index fabric::host_on(machine_index machine) const {
  std::lock_guard guard(mutex_);
  return machines_[machine].running;
}
std::size_t fabric::active_flows() const {
  std::lock_guard guard(mutex_);
  return sending_;
}
std::size_t fabric::orphaned_flows() const {
  std::lock_guard guard(mutex_);
  return flows_.active() - active_flows();
}
std::size_t fabric::live_actors(host_index host) const {
  std::lock_guard guard(mutex_);
  return hosts_[host].actors.size();
}

std::string fabric::name_of(link_id link) const {
  std::lock_guard guard(mutex_);
  const auto owner = link_owners_[static_cast<std::uint32_t>(link)];
  const auto index = owner / 2;
  const std::string direction = owner % 2 == 0 ? "uplink of " : "downlink of ";
  return direction + (index < machines_.size() ? machines_[index].name : sites_[~(index | 0x80000000)].name);
}
duration fabric::delay_between(host_index from, host_index to) const {
  std::lock_guard guard(mutex_);
  return delay_of(from, to);
}

fabric::dial_outcome fabric::dial(host_index from, host_index to) const {
  std::lock_guard guard(mutex_);
  if (from >= hosts_.size() || to >= hosts_.size()) return {};
  const bool opens = hosts_[from].alive && hosts_[to].alive && machines_[hosts_[to].machine].nat == nat_class::open;
  return {opens, delay_of(from, to) + delay_of(to, from)};
}
nat_class fabric::nat_of(host_index host) const {
  std::lock_guard guard(mutex_);
  return machines_[hosts_[host].machine].nat;
}
std::uint64_t fabric::public_address(host_index of, host_index by) const {
  std::lock_guard guard(mutex_);
  if (of >= hosts_.size()) return 0;
  return reach_ ? reach_->address_of(of, by) : std::uint64_t{hosts_[of].machine} + 1;
}
bool fabric::relay_left() const {
  std::lock_guard guard(mutex_);
  return reach_ && reach_->relay_left();
}
std::optional<reachability_counts> fabric::reachability_totals() const {
  std::lock_guard guard(mutex_);
  return reach_ ? std::optional(reach_->counts()) : std::nullopt;
}
host_index fabric::host_of(const caf::actor& actor) const {
  auto* it = caf::actor_cast<caf::abstract_actor*>(actor);
  if (it == nullptr) return no_host;
  if (auto* address = dynamic_cast<port*>(it)) return address->host();
  std::lock_guard guard(mutex_);
  auto* found = actors_.find(actor.id());
  return found != nullptr ? found->where.host : no_host;
}

void fabric::note_arrival(host_index receiver) noexcept {
  before_arrival();
  auto running = coordinator::current_host();
  if (running != no_host && running != receiver) ++bypassed_;
}

// -- actors and ports -----------------------------------------------------------------------------

void fabric::actor_born(host_index index, const caf::strong_actor_ptr& actor) {
  std::lock_guard guard(mutex_);
  auto& host = hosts_[index];
  auto ordinal = host.next_ordinal++;
  actors_[actor->id()] = {{index, ordinal}, nullptr};
  host.actors.emplace(ordinal, actor);
  // Spawned by an actor that was killed in the middle of its handler?
  if (!host.alive) actor->enqueue(kill_message(actor), nullptr);
}

void fabric::actor_ended(caf::actor_id id, caf::error reason) {
  std::unique_lock guard(mutex_);
  auto* found = actors_.find(id);
  if (found == nullptr) return;
  auto where = found->where;
  auto published = std::move(found->port);
  actors_.erase(id);
  hosts_[where.host].actors.erase(where.ordinal);
  if (!published) return;
  auto& of = *static_cast<port*>(caf::actor_cast<caf::abstract_actor*>(published));
  of.actor_.reset();
  auto observers = std::move(of.observers_);
  of.observers_.clear();
  if (options_.over == nullptr) {
    for (auto& observer : observers) notify(of, std::move(observer), reason);
    return;
  }
  // Those on other hosts learn it from the carrier.
  for (auto& observer : observers)
    if (observer.host == where.host || observer.host == no_host)
      notify(of, std::move(observer), reason);
    else
      of.observers_.push_back(std::move(observer));
  guard.unlock();
  options_.over->ended(where);
}

caf::strong_actor_ptr fabric::port_of(const caf::strong_actor_ptr& actor) {
  auto* found = actors_.find(actor->id());
  if (found == nullptr) return nullptr;
  auto& entry = *found;
  if (!entry.port) {
    caf::actor_config config;
    entry.port = caf::make_actor<port, caf::strong_actor_ptr>(
        caf::actor_id{entry.where.ordinal} + 1, hosts_[entry.where.host].node, &system_, config, link_,
        actor, entry.where.host, entry.where.ordinal);
  }
  return entry.port;
}

caf::actor fabric::address_of(const caf::actor& actor) {
  std::lock_guard guard(mutex_);
  auto out = port_of(caf::actor_cast<caf::strong_actor_ptr>(actor));
  return out ? caf::actor_cast<caf::actor>(out) : caf::actor{};
}

void fabric::observe(port& of, caf::attachable_ptr hook) {
  std::unique_lock guard(mutex_);
  port::observer observer{std::move(hook), coordinator::current_host(), of.next_observer_++};
  if (options_.over != nullptr && observer.host != no_host && observer.host != of.host()) {
    const auto from = observer.host;
    of.observers_.push_back(std::move(observer));
    // Kept until its observers are told, whatever becomes of the actor meanwhile.
    hosts_[of.host()].ports.try_emplace(of.ordinal(), caf::actor_cast<caf::strong_actor_ptr>(&of));
    guard.unlock();
    return options_.over->watch(from, {of.host(), of.ordinal()});
  }
  if (of.actor_ && (observer.host == no_host || observer.host == of.host() ||
                    !silent_for(observer.host, of.host(), options_.detection_time))) {
    if (of.observers_.size() >= of.sweep_observers_at_) sweep(of);
    of.observers_.push_back(std::move(observer));
  } else {
    // Somebody else answers at its address, and says who it is; or its host does, and knows no such actor.
    const auto& there = hosts_[of.host()];
    const bool answered = !of.actor_ && (there.alive || machines_[there.machine].running != no_host) && observer.host != no_host &&
                          !blocked(observer.host, of.host()) && !blocked(of.host(), observer.host);
    notify(of, std::move(observer), answered ? caf::error{} : caf::make_error(caf::exit_reason::unreachable));
  }
}

/// Observers on dead hosts are told nothing any more, and never say that they do not watch.
void fabric::sweep(port& of) {
  std::erase_if(of.observers_, [this](const port::observer& o) { return o.notice == 0 && o.host != no_host && !hosts_[o.host].alive; });
  of.sweep_observers_at_ = std::max<std::size_t>(64, 2 * of.observers_.size());
}

std::size_t fabric::forget(port& of, const caf::attachable::token& what) {
  std::lock_guard guard(mutex_);
  return std::erase_if(of.observers_, [&](const port::observer& o) {
    if (!o.hook->matches(what)) return false;
    if (o.notice != 0) clock_.cancel(o.notice);
    return true;
  });
}

void fabric::notify(port& of, port::observer observer, const caf::error& reason) {
  auto& host = hosts_[of.host()];
  auto when = clock_.now();
  if (observer.host == of.host()) {
    // At once.
  } else if ((!host.alive && host.died_by == kill_scope::machine) ||
             (observer.host != no_host && (blocked(of.host(), observer.host) || silent_for(observer.host, of.host(), options_.detection_time)))) {
    when += options_.detection_time;
  } else if (observer.host != no_host) {
    when += delay_of(of.host(), observer.host);
    // The end of a connection does not overtake what is under way on it.
    auto key = key_of(of.host(), observer.host);
    if (auto* last = last_small_.find(key)) when = std::max(when, *last);
    if (auto* line = line_of_.find(key)) when = std::max(when, connections_[*line - 1].last_arrival);
  }
  observer.notice = clock_.at(when, [this, self = caf::actor_cast<caf::strong_actor_ptr>(&of), reason,
                                     number = observer.number] {
    tell(*static_cast<port*>(caf::actor_cast<caf::abstract_actor*>(self)), number, reason);
  });
  of.observers_.push_back(std::move(observer));
}

void fabric::tell(port& of, std::uint64_t number, const caf::error& reason) {
  std::unique_lock guard(mutex_);
  auto found = std::find_if(of.observers_.begin(), of.observers_.end(),
                            [&](const port::observer& o) { return o.number == number; });
  if (found == of.observers_.end()) return;
  auto observer = std::move(*found);
  of.observers_.erase(found);
  if (observer.host != no_host && !hosts_[observer.host].alive) return;
  report({event_kind::down, clock_.now(), clock_.now(), {of.host(), of.ordinal()}, {observer.host, 0}, "down", 0});
  guard.unlock();
  acting_as as{observer.host};
  observer.hook->actor_exited(reason, nullptr);
}

// -- sending --------------------------------------------------------------------------------------

std::uint64_t fabric::counted_by_caf(const caf::type_erased_tuple& content, const char* name) const {
  caf::detail::serialized_size_inspector counter{system_};
  if (auto err = counter(const_cast<caf::type_erased_tuple&>(content)))
    check_failed(__FILE__, __LINE__, "every message can be serialized", name);
  return counter.result();
}

std::uint64_t fabric::wire_size(const caf::type_erased_tuple& content, const message_class& what) {
  const auto serialized = what.bytes != nullptr ? what.bytes(content) : counted_by_caf(content, what.name);
  if (!options_.wire_overhead) return serialized;
  auto body = serialized + std::char_traits<char>::length(what.name) + framing_bytes;
  return body + segment_header_bytes * ((body + segment_bytes - 1) / segment_bytes);
}

void fabric::send(port& to, caf::mailbox_element_ptr element) {
  auto from = coordinator::current_host();
  if (from == to.host() || from == no_host) {
    std::unique_lock guard(mutex_);
    hand_over(guard, to, from, std::move(element));
    return;
  }
  auto what = options_.classify(element->content());
  auto acceptable = what.name[0] != '?' || element->mid.is_response();
  auto bytes = acceptable ? wire_size(element->content(), what) : 0;
  if (element->mid.is_urgent_message()) element->mid = element->mid.with_normal_priority();
  std::unique_lock guard(mutex_);
  auto& sending = hosts_[from];
  if (!sending.alive) {
    ++lost_;
    return;
  }
  if (!acceptable) {  // exit_msg, down_msg, errors, CAF's own: never taken from another host
    ++refused_;
    return;
  }
  traffic_[what.traffic] += bytes;
  if (!hosts_[to.host()].alive) {
    ++lost_;
    return;
  }
  endpoint source{from, 0};
  if (element->sender && element->sender->node() == system_.node())
    if (auto* found = actors_.find(element->sender->id())) {
      if (found->where.host == from) source = found->where;
      element->sender = found->port ? found->port : port_of(element->sender);
    }
  if (options_.over != nullptr && !options_.shaped) {
    guard.unlock();
    return options_.over->carry(source, {to.host(), to.ordinal()}, std::move(element), bytes, !small(bytes, what));
  }
  in_transit item{caf::actor_cast<caf::strong_actor_ptr>(&to), std::move(element), source, bytes, clock_.now(), what.name};
  if (reach_ && !reaches(item, to.host(), what)) {
    element = std::move(item.element);  // if it is lost, it ends after the lock
    return;
  }
  depart(std::move(item), to.host(), what);
}

/// Whether `what` may depart now, and over which relay; if not, it is held or lost.
bool fabric::reaches(in_transit& what, host_index to, message_class kind) {
  const auto from = what.from.host;
  const auto key = key_of(from, to);
  if (auto before = held_.find(key); before != held_.end()) {  // the event that releases them comes
    before->second.push_back({std::move(what), to, kind});
    return false;
  }
  const auto answer = reach_->ask(from, to, what.bytes, clock_.now());
  switch (answer.what) {
    case reachability::answer::kind::go:
      what.relay = answer.relay;
      return true;
    case reachability::answer::kind::wait:
      held_[key].push_back({std::move(what), to, kind});
      clock_.at(answer.ready, [this, key] { release(static_cast<host_index>(key >> 32), static_cast<host_index>(key)); });
      return false;
    case reachability::answer::kind::never:
      traffic_[kind.traffic] -= what.bytes;
      return false;
  }
  return false;
}

void fabric::release(host_index from, host_index to) {
  std::vector<held_message> waiting;
  std::lock_guard guard(mutex_);  // released before what is lost is destroyed
  auto found = held_.find(key_of(from, to));
  if (found == held_.end()) return;
  waiting = std::move(found->second);
  held_.erase(found);
  for (auto& each : waiting) {
    if (!hosts_[from].alive || !hosts_[to].alive)
      ++lost_;
    else if (reaches(each.what, to, each.kind))
      depart(std::move(each.what), to, each.kind);
  }
}

bool fabric::small(std::uint64_t bytes, message_class what) const {
  return bytes <= (what.own_stream ? std::max(options_.own_stream_bytes, options_.small_message_bytes) : options_.small_message_bytes);
}

void fabric::depart(in_transit item, host_index to, message_class what) {
  const auto from = item.from.host;
  const auto relay = item.relay;
  const auto bytes = item.bytes;
  auto& sending = hosts_[from];
  auto now = clock_.now();
  auto at = keep(std::move(item));
  if (small(bytes, what)) {
    if (!cuts_.empty() && blocked(from, to, relay)) return stall_of(from, to, relay).small.push_back(at);
    auto begin = std::max(sending.small_free, now);
    if (flows_.model() == transfer_model::tcp) {
      const auto ahead = flows_.flows_on(sending.uplink);
      if (ahead > 0) begin = std::max(begin, now + transmission_time(ahead * (segment_bytes + segment_header_bytes), sending.up));
    }
    in_flight_[at].left = sending.small_free = begin + transmission_time(bytes, sending.up);
    auto delay = small_delay(from, relay == no_host ? to : relay, bytes, what);
    if (relay != no_host) {
      delay += transmission_time(bytes, hosts_[relay].up);
      delay += small_delay(relay, to, bytes, what);
    }
    arrive_later(at, last_small(from, to), delay);
    return;
  }
  auto index = in_flight_[at].line = connect(from, to);
  auto& line = connections_[index];
  (line.first == none ? line.first : in_flight_[line.last].next) = at;
  line.last = at;
  if (line.first != at) return;
  link_in(index);
  start_next(index, flow_time());
}

std::uint32_t fabric::keep(in_transit what) {
  if (in_flight_free_.empty()) {
    in_flight_.push_back(std::move(what));
    return static_cast<std::uint32_t>(in_flight_.size() - 1);
  }
  auto at = in_flight_free_.back();
  in_flight_free_.pop_back();
  in_flight_[at] = std::move(what);
  return at;
}

duration& fabric::last_small(host_index from, host_index to) {
  if (last_small_.size() >= last_small_.capacity())
    last_small_.erase_if([now = clock_.now()](std::uint64_t, duration last) { return last <= now; });
  return last_small_[key_of(from, to)];
}

std::uint32_t fabric::connect(host_index from, host_index to) {
  auto& named = line_of_[key_of(from, to)];
  if (named != 0) return named - 1;
  if (connections_free_.empty()) {
    connections_free_.push_back(static_cast<std::uint32_t>(connections_.size()));
    connections_.emplace_back();
  }
  auto line = connections_free_.back();
  connections_free_.pop_back();
  auto& made = connections_[line] = {};
  made.from = from;
  made.to = to;
  named = line + 1;
  return line;
}

void fabric::forget_if_idle(std::uint32_t index) {
  auto& line = connections_[index];
  if (line.first != none || line.under_way > 0) return;
  line_of_.erase(key_of(line.from, line.to));
  connections_free_.push_back(index);
}

// Both hosts know a connection while it has bulk to send.
void fabric::link_in(std::uint32_t index) {
  auto add = [&](std::uint32_t& first, neighbours connection::*list) {
    (connections_[index].*list) = {first, none};
    if (first != none) (connections_[first].*list).previous = index;
    first = index;
  };
  add(hosts_[connections_[index].from].first_out, &connection::out);
  add(hosts_[connections_[index].to].first_in, &connection::in);
  ++sending_;
}

void fabric::link_out(std::uint32_t index) {
  auto drop = [&](std::uint32_t& first, neighbours connection::*list) {
    auto [next, previous] = connections_[index].*list;
    (previous == none ? first : (connections_[previous].*list).next) = next;
    if (next != none) (connections_[next].*list).previous = previous;
  };
  drop(hosts_[connections_[index].from].first_out, &connection::out);
  drop(hosts_[connections_[index].to].first_in, &connection::in);
  --sending_;
}

void fabric::start_next(std::uint32_t index, duration now) {
  auto& line = connections_[index];
  const auto& on = way_between(line.from, line.to);
  const auto& next = in_flight_[line.first];
  const auto& from = machines_[hosts_[line.from].machine];
  const auto& to = machines_[hosts_[line.to].machine];
  const auto relay = next.relay;
  const auto path = relay == no_host ? route_between(from, to) : route_through(from, relay, to);
  const auto one_way = [&](host_index a, host_index b) {
    return relay == no_host ? delay_of(a, b) : delay_of(a, relay) + delay_of(relay, b);
  };
  transfer_request what;
  what.path = {path.links, path.length};
  what.bytes = next.bytes;
  if (on.quality.duplicate > 0) what.bytes += static_cast<std::uint64_t>(on.quality.duplicate * static_cast<double>(next.bytes));
  what.tag = index;
  route back;
  static_cast<path_now&>(what) = path_of(line.from, line.to, relay);
  if (flows_.model() != transfer_model::max_min) {
    if (flows_.model() == transfer_model::tcp) what.connection = window_of(line.from, line.to, now);
    if (flows_.model() == transfer_model::lv08) {
      back = relay == no_host ? route_between(to, from) : route_through(to, relay, from);
      what.way_back = {back.links, back.length};
    }
  }
  if (options_.on_transfer) {
    line.record = std::make_unique<transfer_record>();
    line.record->number = next_transfer_++;
    line.record->from = next.from;
    const auto& receiver = *static_cast<port*>(caf::actor_cast<caf::abstract_actor*>(next.to));
    line.record->to = {receiver.host(), receiver.ordinal()};
    line.record->type = next.type;
    line.record->bytes = next.bytes;
    line.record->sent = next.sent;
    line.record->begun = now;
    line.record->round_trip = one_way(line.from, line.to) + one_way(line.to, line.from);
  }
  line.flow = flows_.start(what, now);
  flows_change();
  if (!cuts_.empty() && blocked(line.from, line.to, relay)) stop_line(index, now);
}

void fabric::end_record(connection& line, duration left, duration arrives, bool cut) {
  if (!line.record) return;
  line.record->left = left;
  line.record->arrives = arrives;
  line.record->cut = cut;
  if (reporting_) options_.on_transfer(*line.record);
  line.record.reset();
}

fabric::route fabric::route_between(const machine& from, const machine& to) const {
  route out;
  auto add = [&out](link_id link) { out.links[out.length++] = link; };
  add(from.uplink);
  // Up from the sender to the innermost site that holds both, then down to the receiver.
  site_index a = from.site, b = to.site;
  link_id down[4];
  std::size_t downs = 0;
  while (a != b) {
    const bool a_deeper = b == no_site || (a != no_site && sites_[a].depth >= sites_[b].depth);
    if (a_deeper) {
      add(sites_[a].uplink);
      a = sites_[a].inside;
    } else {
      down[downs++] = sites_[b].downlink;
      b = sites_[b].inside;
    }
  }
  while (downs > 0) add(down[--downs]);
  add(to.downlink);
  return out;
}

fabric::route fabric::route_through(const machine& from, host_index relay, const machine& to) const {
  const auto& by = machines_[hosts_[relay].machine];
  auto out = route_between(from, by);
  const auto rest = route_between(by, to);
  std::copy_n(rest.links, rest.length, out.links + out.length);
  out.length += rest.length;
  return out;
}

const fabric::way& fabric::way_between(host_index from, host_index to) const {
  return ways_[hosts_[from].place][hosts_[to].place];
}

duration fabric::delay_of(host_index from, host_index to) const {
  const auto& on = way_between(from, to);
  if (coordinates_.empty()) return on.quality.delay;
  const auto a = hosts_[from].machine, b = hosts_[to].machine;
  if (a >= coordinates_.size() || b >= coordinates_.size()) return on.quality.delay;
  const auto &at = coordinates_[a], &there = coordinates_[b];
  return std::isnan(at.x) || std::isnan(there.x) ? on.quality.delay : on.lines + distance(at, there);
}

/// What a pair of hosts knows from its last transfer; nothing if that is long ago.
tcp_window& fabric::window_of(host_index from, host_index to, duration now) {
  if (windows_.size() >= windows_.capacity())
    windows_.erase_if([now](std::uint64_t, const tcp_window& w) { return now - w.used_until > idle_connection; });
  auto& window = windows_[key_of(from, to)];
  if (now - window.used_until > idle_connection) window = {};
  return window;
}

path_memory* fabric::memory_of(const way& on, host_index from, host_index to) {
  return on.remembers ? &memories_[key_of(from, to)] : nullptr;
}

duration fabric::drawn_delay(host_index from, host_index to) {
  const auto& on = way_between(from, to);
  auto& draws = hosts_[from].jitter;
  auto* memory = memory_of(on, from, to);
  if (coordinates_.empty()) return draw_delay(on.quality, draws, memory);
  path_quality here = on.quality;
  here.delay = delay_of(from, to);
  return draw_delay(here, draws, memory);
}

duration fabric::drawn_delay(host_index from, host_index relay, host_index to) {
  if (relay == no_host) return drawn_delay(from, to);
  const auto first = drawn_delay(from, relay);
  return first + drawn_delay(relay, to);
}

/// The delay of a small message: what it waits for because of losses is in it.
duration fabric::small_delay(host_index from, host_index to, std::uint64_t bytes, message_class what) {
  const auto& on = way_between(from, to);
  const auto* quality = &on.quality;
  auto& draws = hosts_[from].jitter;
  auto delay = drawn_delay(from, to);
  if (quality->reorder > 0 && draws.uniform() < quality->reorder) delay = duration{};
  if (quality->duplicate > 0 && draws.uniform() < quality->duplicate) traffic_[what.traffic] += bytes;
  if (quality->loss.any()) {
    const auto packets = (bytes + segment_bytes - 1) / segment_bytes;
    if (const auto again = draw_retransmissions(quality->loss, packets, draws, memory_of(on, from, to))) {
      traffic_[what.traffic] += again * bytes;
      const auto timeout = retransmission_timeout(flows_.tcp(), delay_of(from, to) + delay_of(to, from));
      delay += std::min(timeout * ((std::int64_t{1} << again) - 1), options_.detection_time);
    }
  }
  return delay;
}

void fabric::arrive_later(std::uint32_t index, duration& last, duration delay) {
  last = std::max(last, in_flight_[index].left + delay);
  clock_.at(last, [this, index] { arrive(index); });  // small enough for std::function not to allocate
}

void fabric::arrive(std::uint32_t in_flight) {
  std::unique_lock guard(mutex_);
  auto what = std::move(in_flight_[in_flight]);
  in_flight_free_.push_back(in_flight);
  if (what.line != none) {
    --connections_[what.line].under_way;
    forget_if_idle(what.line);
  }
  auto& to = *static_cast<port*>(caf::actor_cast<caf::abstract_actor*>(what.to));
  auto& source = hosts_[what.from.host];
  if (!hosts_[to.host()].alive || (!source.alive && source.died_at < what.left)) {
    ++lost_;
    guard.unlock();  // before what is lost is destroyed
    return;
  }
  if (options_.over != nullptr) {
    guard.unlock();
    return options_.over->carry(what.from, {to.host(), to.ordinal()}, std::move(what.element), what.bytes, what.line != none);
  }
  report({event_kind::message, clock_.now(), what.sent, what.from, {to.host(), to.ordinal()}, what.type,
          what.bytes});
  hand_over(guard, to, to.host(), std::move(what.element));
}

void fabric::hand_over(std::unique_lock<std::recursive_mutex>& guard, port& to, host_index on_behalf,
                       caf::mailbox_element_ptr element) {
  auto actor = to.actor_;
  guard.unlock();
  acting_as as{on_behalf};
  if (!actor) {
    // The host lives but the actor has ended: a request is refused, as a closed port would.
    // As an event, so that an asker of the same host does not see the answer before it has asked.
    if (element->mid.is_request() && element->sender)
      clock_.at(clock_.now(), [asker = element->sender, answer = element->mid.response_id(), on_behalf] {
        acting_as as{on_behalf};
        asker->enqueue(caf::make_mailbox_element(nullptr, answer, {}, caf::make_error(caf::sec::request_receiver_down)),
                       nullptr);
      });
    return;
  }
  actor->enqueue(std::move(element), nullptr);
}

// -- flows ----------------------------------------------------------------------------------------

duration fabric::flow_time() {
  // On the wall clock a completion may be served late: what has ended by now must be taken out first.
  auto now = clock_.now();
  if (clock_.mode() == time_mode::wall_clock) finish_flows(now);
  return now;
}

void fabric::flows_change() {
  // The wall clock does not stop for the hook between two instants.
  if (!std::exchange(flows_changed_, true) && clock_.mode() == time_mode::wall_clock)
    clock_.at(clock_.now(), [this] { settle(); });
}

void fabric::settle() {
  std::lock_guard guard(mutex_);
  if (!std::exchange(flows_changed_, false)) return;
  auto next = flows_.next_event();
  if (next_flow_event_ != 0) {
    if (next && *next == next_flow_time_) return;
    clock_.cancel(next_flow_event_);
    next_flow_event_ = 0;
  }
  if (!next) return;
  next_flow_time_ = *next;
  next_flow_event_ = clock_.at(*next, [this] { flows_due(); });
}

void fabric::flows_due() {
  std::lock_guard guard(mutex_);
  next_flow_event_ = 0;
  flows_change();
  finish_flows(clock_.now());
}

void fabric::finish_flows(duration now) {
  std::vector<finished_transfer> done;
  flows_.advance(now, done);
  for (auto& flow : done) {
    auto index = static_cast<std::uint32_t>(flow.tag);
    auto& line = connections_[index];
    auto item = line.first;
    line.first = in_flight_[item].next;
    in_flight_[item].left = flow.at;
    ++line.under_way;
    if (flows_.model() == transfer_model::tcp) window_of(line.from, line.to, flow.at) = flow.connection;
    arrive_later(item, line.last_arrival,
                 flows_.delay_follows() ? drawn_delay(line.from, in_flight_[item].relay, line.to) : duration{});
    end_record(line, flow.at, line.last_arrival, false);
    if (line.first != none)
      start_next(index, now);
    else
      link_out(index);
  }
}

void fabric::report(const delivered_event& what) {
  if (reporting_) options_.on_event(what);
}

void fabric::stop_reporting() {
  std::lock_guard guard(mutex_);
  reporting_ = false;
}

}  // namespace shoal::netem
