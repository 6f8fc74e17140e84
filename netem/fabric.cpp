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
#include "netem/thread_sanitizer.hpp"

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

caf::mailbox_element_ptr kill_message(const caf::strong_actor_ptr& actor) {
  return caf::make_mailbox_element(nullptr, caf::make_message_id(caf::message_priority::high), {},
                                   caf::exit_msg{caf::actor_cast<caf::actor_addr>(actor), caf::exit_reason::kill});
}

duration transmission_time(std::uint64_t bytes, data_rate rate) {
  return from_seconds(static_cast<double>(bytes) / rate.bytes_per_second());
}

}  // namespace

fabric::fabric(caf::actor_system& system, fabric_options options)
    : system_(system),
      clock_(coordinator::of(system)),
      options_(std::move(options)),
      reporting_(static_cast<bool>(options_.on_event)) {
  clock_.on_actor([this](host_index host, const caf::strong_actor_ptr& actor) { actor_born(host, actor); },
                  [this](caf::actor_id id) { actor_ended(id, {}); });
  clock_.before_time_moves([this] { settle(); });
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
  for (host_index host = 0; host < hosts_.size(); ++host) kill(host, kill_scope::process);
  clock_.settle();
  {
    // What is under way may hold the last reference to an actor: it goes while the coordinator can clean up.
    std::vector<in_transit> dropped;
    std::lock_guard guard(mutex_);  // released before what was dropped is destroyed
    dropped.swap(in_flight_);
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
  delays_.resize(regions_.size());
  for (auto& row : delays_) row.resize(regions_.size());
  return static_cast<region_index>(regions_.size() - 1);
}

void fabric::set_delay(region_index a, region_index b, path_delay delay) {
  std::lock_guard guard(mutex_);
  delays_[a][b] = delays_[b][a] = delay;
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
  auto incarnation = m.incarnations++;
  hosts_.push_back({.machine = index,
                    .region = m.region,
                    .up = m.up,
                    .incarnation = incarnation,
                    .node = node_of(m.name, incarnation),
                    .jitter = stream(options_.seed, "netem.jitter", index, incarnation)});
  m.running = static_cast<host_index>(hosts_.size() - 1);
  report({event_kind::host_started, clock_.now(), clock_.now(), {m.running, 0}, {m.running, 0}, "", 0});
  return m.running;
}

bool fabric::kill(host_index index, kill_scope scope) {
  std::lock_guard guard(mutex_);
  auto& host = hosts_[index];
  if (!host.alive) return false;
  auto now = flow_time();
  host.alive = false;
  host.died_by = scope;
  host.died_at = now;
  machines_[host.machine].running = no_host;
  report({event_kind::host_killed, now, now, {index, 0}, {index, 0}, "", 0});
  for (auto key : host.bulk) {
    auto& line = connections_.at(key);
    lost_ += line.waiting.size();
    flows_.cancel(*line.flow, now);
    hosts_[line.from == index ? line.to : line.from].bulk.erase(key);
    line.flow.reset();
    line.waiting.clear();
    flows_change();
  }
  host.bulk.clear();
  acting_as as{index};
  for (auto& [ordinal, actor] : host.actors) actor->enqueue(kill_message(actor), nullptr);
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
  std::size_t count = 0;
  for (auto& host : hosts_) count += host.bulk.size();
  return count / 2;  // each is known to both of its hosts
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
  std::lock_guard guard(mutex_);
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
  for (auto& observer : observers) notify(of, std::move(observer), reason);
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
  SHOAL_CHECK(out != nullptr, "only a living actor of a host has an address");
  return caf::actor_cast<caf::actor>(out);
}

void fabric::observe(port& of, caf::attachable_ptr hook) {
  std::lock_guard guard(mutex_);
  port::observer observer{std::move(hook), coordinator::current_host(), of.next_observer_++};
  if (of.actor_)
    of.observers_.push_back(std::move(observer));
  else
    notify(of, std::move(observer), caf::make_error(caf::exit_reason::unreachable));
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
  } else if (!host.alive && host.died_by == kill_scope::machine) {
    when += options_.detection_time;
  } else if (observer.host != no_host) {
    when += path(of.host(), observer.host).delay;
    // The end of a connection does not overtake what is under way on it.
    auto key = key_of(of.host(), observer.host);
    if (auto* last = last_small_.find(key)) when = std::max(when, *last);
    if (auto line = connections_.find(key); line != connections_.end())
      when = std::max(when, line->second.last_arrival);
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

std::uint64_t fabric::wire_size(const caf::type_erased_tuple& content, const message_class& what) {
  caf::detail::serialized_size_inspector counter{system_};
  if (auto err = counter(const_cast<caf::type_erased_tuple&>(content)))
    check_failed(__FILE__, __LINE__, "every message can be serialized", what.name);
  auto body = counter.result() + std::char_traits<char>::length(what.name) + framing_bytes;
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
  auto now = clock_.now();
  in_transit item{caf::actor_cast<caf::strong_actor_ptr>(&to), std::move(element), source, bytes, now, what};
  if (bytes <= options_.small_message_bytes) {
    item.left = sending.small_free = std::max(sending.small_free, now) + transmission_time(bytes, sending.up);
    arrive_later(to.host(), std::move(item), last_small(from, to.host()));
    return;
  }
  auto& line = connect(from, to.host());
  line.waiting.push_back(std::move(item));
  if (!line.flow) start_next(key_of(from, to.host()), line, flow_time());
}

duration& fabric::last_small(host_index from, host_index to) {
  if (last_small_.size() >= last_small_.capacity())
    last_small_.erase_if([now = clock_.now()](std::uint64_t, duration last) { return last <= now; });
  return last_small_[key_of(from, to)];
}

fabric::connection& fabric::connect(host_index from, host_index to) {
  auto key = key_of(from, to);
  auto found = connections_.find(key);
  if (found != connections_.end()) return found->second;
  if (connections_.size() >= connections_limit_) {
    auto now = clock_.now();
    std::erase_if(connections_, [now](const auto& entry) {
      return entry.second.waiting.empty() && entry.second.last_arrival <= now;
    });
    connections_limit_ = std::max<std::size_t>(1024, 2 * connections_.size());
  }
  return connections_.try_emplace(key, connection{from, to, {}, {}, {}}).first->second;
}

void fabric::start_next(std::uint64_t key, connection& line, duration now) {
  link_id path[] = {machines_[hosts_[line.from].machine].uplink, machines_[hosts_[line.to].machine].downlink};
  line.flow = flows_.start(path, line.waiting.front().bytes, std::numeric_limits<double>::infinity(), now, key);
  hosts_[line.from].bulk.insert(key);
  hosts_[line.to].bulk.insert(key);
  flows_change();
}

const path_delay& fabric::path(host_index from, host_index to) const {
  return delays_[hosts_[from].region][hosts_[to].region];
}

duration fabric::draw_delay(host_index from, host_index to) {
  auto [delay, jitter] = path(from, to);
  if (jitter.count() == 0) return delay;
  auto& draws = hosts_[from].jitter;
  auto offset = static_cast<std::int64_t>(draws.below(2 * static_cast<std::uint64_t>(jitter.count()) + 1)) -
                jitter.count();
  return std::max(duration{}, delay + duration{offset});
}

void fabric::arrive_later(host_index to, in_transit what, duration& last) {
  last = std::max(last, what.left + draw_delay(what.from.host, to));
  std::uint32_t index;
  if (in_flight_free_.empty()) {
    index = static_cast<std::uint32_t>(in_flight_.size());
    in_flight_.push_back(std::move(what));
  } else {
    index = in_flight_free_.back();
    in_flight_free_.pop_back();
    in_flight_[index] = std::move(what);
  }
  clock_.at(last, [this, index] { arrive(index); });  // small enough for std::function not to allocate
}

void fabric::arrive(std::uint32_t in_flight) {
  std::unique_lock guard(mutex_);
  auto what = std::move(in_flight_[in_flight]);
  in_flight_free_.push_back(in_flight);
  auto& to = *static_cast<port*>(caf::actor_cast<caf::abstract_actor*>(what.to));
  auto& source = hosts_[what.from.host];
  if (!hosts_[to.host()].alive || (!source.alive && source.died_at < what.left)) {
    ++lost_;
    guard.unlock();  // before what is lost is destroyed
    return;
  }
  report({event_kind::message, clock_.now(), what.sent, what.from, {to.host(), to.ordinal()}, what.what.name,
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
  flows_change();
  finish_flows(clock_.now());
}

void fabric::finish_flows(duration now) {
  std::vector<finished_flow> done;
  flows_.advance(now, done);
  for (auto& flow : done) {
    auto& line = connections_.at(flow.tag);
    line.flow.reset();
    auto item = std::move(line.waiting.front());
    line.waiting.pop_front();
    item.left = flow.at;
    arrive_later(line.to, std::move(item), line.last_arrival);
    if (!line.waiting.empty()) {
      start_next(flow.tag, line, now);
    } else {
      hosts_[line.from].bulk.erase(flow.tag);
      hosts_[line.to].bulk.erase(flow.tag);
    }
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
