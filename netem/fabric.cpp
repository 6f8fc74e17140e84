#include "netem/fabric.hpp"

#include <algorithm>

#include <caf/actor_cast.hpp>
#include <caf/detail/serialized_size.hpp>
#include <caf/error.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>

#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"

namespace shoal::netem {

namespace {

constexpr std::uint64_t framing_bytes = 32;
constexpr std::uint64_t segment_bytes = 1448;
constexpr std::uint64_t segment_header_bytes = 40;

std::uint64_t key_of(host_index from, host_index to) { return (std::uint64_t{from} << 32) | to; }

caf::node_id node_of(const std::string& name, std::uint32_t incarnation) {
  auto hash = hash_of(std::as_bytes(std::span(name)));
  caf::node_id::default_data::host_id_type host;
  std::copy_n(hash.bytes.begin(), host.size(), host.begin());
  return caf::node_id{caf::make_counted<caf::node_id::default_data>(incarnation, host)};
}

duration transmission_time(std::uint64_t bytes, data_rate rate) {
  return from_seconds(static_cast<double>(bytes) / rate.bytes_per_second());
}

}  // namespace

fabric::fabric(caf::actor_system& system, fabric_options options)
    : system_(system), clock_(coordinator::of(system)), options_(std::move(options)) {
  clock_.on_actor([this](host_index host, const caf::strong_actor_ptr& actor) { actor_born(host, actor); },
                  [this](caf::actor_id id) { actor_ended(id, {}); });
  clock_.before_time_moves([this] { settle(); });
  clock_.on_timer([this](caf::actor_id id, const caf::type_erased_tuple& content) {
    if (!options_.on_event) return;
    std::lock_guard guard(mutex_);
    auto found = actors_.find(id);
    if (found == actors_.end()) return;
    auto now = clock_.now();
    report({event_kind::timer, now, now, found->second.where, found->second.where,
            options_.classify(content).name, 0});
  });
}

fabric::~fabric() {
  clock_.on_actor({}, {});
  clock_.before_time_moves({});
  clock_.on_timer({});
}

// -- building -------------------------------------------------------------------------------------

region_index fabric::add_region(std::string name) {
  regions_.push_back(std::move(name));
  return static_cast<region_index>(regions_.size() - 1);
}

void fabric::set_delay(region_index a, region_index b, path_delay delay) {
  delays_[{std::min(a, b), std::max(a, b)}] = delay;
}

machine_index fabric::add_machine(std::string name, region_index region, data_rate up, data_rate down) {
  std::lock_guard guard(mutex_);
  machine m{std::move(name), region, up, down, flows_.add_link(up.bits_per_second),
            flows_.add_link(down.bits_per_second)};
  machines_.push_back(std::move(m));
  return static_cast<machine_index>(machines_.size() - 1);
}

host_index fabric::start_host(machine_index index) {
  std::lock_guard guard(mutex_);
  auto& m = machines_[index];
  SHOAL_CHECK(m.running == no_host, "a machine runs one incarnation at a time");
  host_state host;
  host.machine = index;
  host.incarnation = m.incarnations++;
  host.node = node_of(m.name, host.incarnation);
  hosts_.push_back(std::move(host));
  m.running = static_cast<host_index>(hosts_.size() - 1);
  report({event_kind::host_started, clock_.now(), clock_.now(), {m.running, 0}, {m.running, 0}, "", 0});
  return m.running;
}

bool fabric::kill(host_index index, kill_scope scope) {
  std::lock_guard guard(mutex_);
  auto& host = hosts_[index];
  if (!host.alive) return false;
  host.alive = false;
  host.died_by = scope;
  machines_[host.machine].running = no_host;
  auto now = clock_.now();
  report({event_kind::host_killed, now, now, {index, 0}, {index, 0}, "", 0});
  for (auto key : host.connections) {
    auto found = connections_.find(key);
    if (found == connections_.end()) continue;
    auto& line = found->second;
    lost_ += line.waiting.size();
    if (line.flow) {
      flows_.cancel(*line.flow, now);
      flows_changed_ = true;
    }
    auto other = line.from == index ? line.to : line.from;
    if (other != index) hosts_[other].connections.erase(key);
    connections_.erase(found);
  }
  host.connections.clear();
  clock_.as_host(index, [&] {
    for (auto& [ordinal, weak] : host.actors)
      if (auto actor = caf::actor_cast<caf::strong_actor_ptr>(weak))
        actor->enqueue(caf::make_mailbox_element(nullptr, caf::make_message_id(caf::message_priority::high), {},
                                                 caf::exit_msg{caf::actor_cast<caf::actor_addr>(actor),
                                                               caf::exit_reason::kill}),
                       nullptr);
  });
  return true;
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
  std::size_t count = 0;
  for (auto& host : hosts_)
    for (auto key : host.connections)
      if (auto found = connections_.find(key); found != connections_.end() && found->second.flow) ++count;
  return count / 2;
}
std::size_t fabric::orphaned_flows() const {
  std::lock_guard guard(mutex_);
  return flows_.active() - active_flows();
}
std::size_t fabric::live_actors(host_index host) const {
  std::lock_guard guard(mutex_);
  return hosts_[host].actors.size();
}

void fabric::note_arrival(host_index receiver) noexcept {
  auto running = coordinator::current_host();
  if (running != no_host && running != receiver) ++bypassed_;
}

// -- actors and ports -----------------------------------------------------------------------------

void fabric::actor_born(host_index index, const caf::strong_actor_ptr& actor) {
  std::lock_guard guard(mutex_);
  auto& host = hosts_[index];
  auto ordinal = host.next_ordinal++;
  actors_[actor->id()] = {{index, ordinal}, nullptr};
  host.actors.emplace(ordinal, caf::actor_cast<caf::weak_actor_ptr>(actor));
  if (!host.alive)  // spawned by an actor that was killed in the middle of its handler
    actor->enqueue(caf::make_mailbox_element(
                       nullptr, caf::make_message_id(caf::message_priority::high), {},
                       caf::exit_msg{caf::actor_cast<caf::actor_addr>(actor), caf::exit_reason::kill}),
                   nullptr);
}

void fabric::actor_ended(caf::actor_id id, caf::error reason) {
  std::lock_guard guard(mutex_);
  auto found = actors_.find(id);
  if (found == actors_.end()) return;
  auto where = found->second.where;
  auto published = std::move(found->second.port);
  actors_.erase(found);
  hosts_[where.host].actors.erase(where.ordinal);
  if (!published) return;
  auto& of = *static_cast<port*>(caf::actor_cast<caf::abstract_actor*>(published));
  of.actor_.reset();
  auto observers = std::move(of.observers_);
  of.observers_.clear();
  for (auto& observer : observers) notify(of, std::move(observer), reason);
}

caf::strong_actor_ptr fabric::port_of(const caf::strong_actor_ptr& actor) {
  auto found = actors_.find(actor->id());
  if (found == actors_.end()) return nullptr;
  auto& entry = found->second;
  if (!entry.port) {
    caf::actor_config config;
    entry.port = caf::make_actor<port, caf::strong_actor_ptr>(
        caf::actor_id{entry.where.ordinal} + 1, hosts_[entry.where.host].node, &system_, config, *this,
        actor, entry.where.host, entry.where.ordinal);
  }
  return entry.port;
}

caf::actor fabric::address_of(const caf::actor& actor) {
  std::lock_guard guard(mutex_);
  auto out = port_of(caf::actor_cast<caf::strong_actor_ptr>(actor));
  SHOAL_CHECK(out != nullptr, "only a living actor of a host has an address");
  return caf::actor_cast<caf::actor>(out);
}

void fabric::observe(port& of, caf::attachable_ptr hook) {
  std::lock_guard guard(mutex_);
  port::observer observer{std::move(hook), coordinator::current_host()};
  if (of.actor_)
    of.observers_.push_back(std::move(observer));
  else
    notify(of, std::move(observer), caf::make_error(caf::exit_reason::unreachable));
}

std::size_t fabric::forget(port& of, const caf::attachable::token& what) {
  std::lock_guard guard(mutex_);
  return std::erase_if(of.observers_, [&](const port::observer& o) { return o.hook->matches(what); });
}

void fabric::notify(port& of, port::observer observer, const caf::error& reason) {
  auto& host = hosts_[of.host()];
  auto wait = observer.host == no_host ? duration{} : plain_delay(of.host(), observer.host);
  if (!host.alive && host.died_by == kill_scope::machine) wait = options_.detection_time;
  auto hook = std::make_shared<caf::attachable_ptr>(std::move(observer.hook));
  endpoint from{of.host(), of.ordinal()};
  clock_.at(clock_.now() + wait, [this, hook, from, to = observer.host, why = reason] {
    std::lock_guard guard(mutex_);
    if (to != no_host && !hosts_[to].alive) return;
    report({event_kind::down, clock_.now(), clock_.now(), from, {to, 0}, "down", 0});
    clock_.as_host(to, [&] { (*hook)->actor_exited(why, nullptr); });
  });
}

// -- sending --------------------------------------------------------------------------------------

std::uint64_t fabric::wire_size(const caf::type_erased_tuple& content, const message_class& what) {
  caf::detail::serialized_size_inspector counter{system_};
  if (auto err = counter(const_cast<caf::type_erased_tuple&>(content)))
    check_failed(__FILE__, __LINE__, "every message can be serialized", what.name);
  auto body = counter.result() + std::char_traits<char>::length(what.name) + framing_bytes;
  return body + segment_header_bytes * ((body + segment_bytes - 1) / segment_bytes);
}

void fabric::send(port& to, caf::mailbox_element_ptr element) {
  auto from = coordinator::current_host();
  std::unique_lock guard(mutex_);
  if (from == to.host() || from == no_host) {
    auto actor = to.actor_;
    guard.unlock();
    if (!actor) return;
    if (element->mid.is_response()) clock_.answered(actor->id(), element->mid);
    actor->enqueue(std::move(element), nullptr);
    return;
  }
  if (!hosts_[from].alive) {
    ++lost_;
    return;
  }
  auto what = options_.classify(element->content());
  if (what.name[0] == '?' && !element->mid.is_response()) {
    ++refused_;  // exit_msg, down_msg, errors, CAF's own: never accepted from another host
    return;
  }
  if (element->mid.is_urgent_message()) element->mid = element->mid.with_normal_priority();
  endpoint source{from, 0};
  if (element->sender) {
    if (auto found = actors_.find(element->sender->id());
        found != actors_.end() && element->sender->node() == system_.node()) {
      source = found->second.where;
      element->sender = port_of(element->sender);
    }
  }
  in_transit item{caf::actor_cast<caf::strong_actor_ptr>(&to), std::move(element), source, 0, clock_.now(), what};
  item.bytes = wire_size(item.element->content(), what);
  traffic_[what.traffic] += item.bytes;
  auto key = key_of(from, to.host());
  if (!hosts_[to.host()].alive) {
    ++lost_;
    return;
  }
  auto& line = connect(from, to.host());
  if (item.bytes <= options_.small_message_bytes) {
    auto& m = machines_[hosts_[from].machine];
    m.small_free = std::max(m.small_free, clock_.now()) + transmission_time(item.bytes, m.up);
    auto sent = m.small_free;
    arrive_later(line, std::move(item), sent, line.last_small);
    return;
  }
  line.waiting.push_back(std::move(item));
  if (!line.flow) start_next(key, line);
}

fabric::connection& fabric::connect(host_index from, host_index to) {
  auto key = key_of(from, to);
  auto found = connections_.find(key);
  if (found == connections_.end()) {
    found = connections_
                .emplace(key, connection{from, to, {}, {}, {}, {}, stream(options_.seed, "netem.jitter", from, to)})
                .first;
    hosts_[from].connections.insert(key);
    hosts_[to].connections.insert(key);
  }
  return found->second;
}

void fabric::start_next(std::uint64_t key, connection& line) {
  link_id path[] = {machines_[hosts_[line.from].machine].uplink, machines_[hosts_[line.to].machine].downlink};
  line.flow = flows_.start(path, line.waiting.front().bytes, std::numeric_limits<double>::infinity(),
                           clock_.now(), key);
  flows_changed_ = true;
}

duration fabric::plain_delay(host_index from, host_index to) const {
  auto a = machines_[hosts_[from].machine].region;
  auto b = machines_[hosts_[to].machine].region;
  auto found = delays_.find({std::min(a, b), std::max(a, b)});
  return found == delays_.end() ? duration{} : found->second.delay;
}

duration fabric::draw_delay(connection& line) {
  auto a = machines_[hosts_[line.from].machine].region;
  auto b = machines_[hosts_[line.to].machine].region;
  auto found = delays_.find({std::min(a, b), std::max(a, b)});
  if (found == delays_.end()) return {};
  auto [delay, jitter] = found->second;
  if (jitter.count() == 0) return delay;
  auto offset = static_cast<std::int64_t>(line.jitter.below(2 * static_cast<std::uint64_t>(jitter.count()) + 1)) -
                jitter.count();
  return std::max(duration{}, delay + duration{offset});
}

void fabric::arrive_later(connection& line, in_transit what, duration sent, duration& last) {
  last = std::max(last, sent + draw_delay(line));
  auto item = std::make_shared<in_transit>(std::move(what));
  clock_.at(last, [this, item] { arrive(std::move(*item)); });
}

void fabric::arrive(in_transit what) {
  std::unique_lock guard(mutex_);
  auto& to = *static_cast<port*>(caf::actor_cast<caf::abstract_actor*>(what.to));
  if (!hosts_[to.host()].alive) {
    ++lost_;
    return;
  }
  report({event_kind::message, clock_.now(), what.sent, what.from, {to.host(), to.ordinal()}, what.what.name,
          what.bytes});
  auto actor = to.actor_;
  if (!actor) {
    // The host lives but the actor has ended: a request is refused, as a closed port would.
    if (what.element->mid.is_request() && what.element->sender)
      clock_.as_host(to.host(), [&] {
        what.element->sender->enqueue(
            caf::make_mailbox_element(nullptr, what.element->mid.response_id(), {},
                                      caf::make_error(caf::sec::request_receiver_down)),
            nullptr);
      });
    return;
  }
  guard.unlock();
  if (what.element->mid.is_response()) clock_.answered(actor->id(), what.element->mid);
  actor->enqueue(std::move(what.element), nullptr);
}

// -- flows ----------------------------------------------------------------------------------------

void fabric::settle() {
  std::lock_guard guard(mutex_);
  if (!flows_changed_) return;
  flows_changed_ = false;
  auto next = flows_.next_completion();
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
  flows_changed_ = true;
  std::vector<finished_flow> done;
  flows_.advance(clock_.now(), done);
  for (auto& flow : done) {
    auto found = connections_.find(flow.tag);
    if (found == connections_.end()) continue;
    auto& line = found->second;
    line.flow.reset();
    auto item = std::move(line.waiting.front());
    line.waiting.pop_front();
    arrive_later(line, std::move(item), clock_.now(), line.last_bulk);
    if (!line.waiting.empty()) start_next(flow.tag, line);
  }
}

void fabric::report(const delivered_event& what) {
  if (options_.on_event) options_.on_event(what);
}

}  // namespace shoal::netem
