#include "netem/fabric.hpp"

#include "kernels/base/check.hpp"
#include "netem/fabric_state.hpp"
#include "netem/thread_sanitizer.hpp"

#include <caf/detail/serialized_size.hpp>
#include <caf/error.hpp>
#include <caf/sec.hpp>

#include <algorithm>
#include <string>

namespace shoal::netem {

namespace {

constexpr std::uint64_t framing_bytes = 32;

} // namespace

fabric_state::fabric_state(caf::actor_system& in, fabric_options chosen)
    : system(in), clock(coordinator::of(in)), options(std::move(chosen)),
      mutex(std::move(options.on_event), std::move(options.on_transfer)), hosts(&in, link),
      ways(places, hosts, options.model, options.tcp, options.detection_time),
      bulk(messages, ways, options.tcp, mutex.wants_transfers()), failures(options.detection_time) {
  clock.on_actor(
      [this](host_index host, const caf::strong_actor_ptr& actor) { actor_born(host, actor); },
      [this](caf::actor_id id) { actor_ended(id); });
  clock.on_arrival([this](std::uint32_t message) { arrive(message); });
  clock.before_time_moves([this] { settle(); });
  clock.on_timer([this](caf::actor_id id, const caf::type_erased_tuple& content) {
    timer_delivered(id, content);
  });
}

fabric::fabric(caf::actor_system& system, fabric_options options)
    : state_(std::make_unique<fabric_state>(system, std::move(options))) {}

fabric::~fabric() {
  auto& s = *state_;
  stop_reporting();
  for (host_index host = 0; host < s.hosts.size(); ++host)
    if (!s.hosts[host].elsewhere) kill(host, kill_scope::process);
  s.clock.settle();
  {
    // Messages in flight may hold the last reference to an actor. They are destroyed while the
    // coordinator can still clean up.
    locked_section here(s.mutex);
    for (auto& message : s.messages.take_all()) here.destroy_later(std::move(message));
    for (auto& [pair, waiting] : s.held)
      for (auto& each : waiting) here.destroy_later(std::move(each.what));
    s.held.clear();
  }
  s.clock.stop();
  s.link->store(nullptr);
  s.clock.on_actor({}, {});
  s.clock.on_arrival({});
  s.clock.before_time_moves({});
  s.clock.on_timer({});
}

void fabric::stop_reporting() {
  state_->mutex.stop_reporting();
}

void fabric_state::timer_delivered(caf::actor_id id, const caf::type_erased_tuple& content) {
  if (!mutex.reporting()) return;
  const auto what = options.classify(content);
  locked_section here(mutex);
  if (const auto* found = hosts.find(id))
    report(here, event_kind::timer, found->where, found->where, what.name);
}

// -- sending --------------------------------------------------------------------------------------

std::uint64_t fabric_state::counted_by_caf(const caf::type_erased_tuple& content,
                                           const char* name) const {
  caf::detail::serialized_size_inspector counter{system};
  if (auto err = counter(const_cast<caf::type_erased_tuple&>(content)))
    check_failed(__FILE__, __LINE__, "every message can be serialized", name);
  return counter.result();
}

std::uint64_t fabric_state::wire_size(const caf::type_erased_tuple& content,
                                      const message_class& what) const {
  const auto serialized =
      what.bytes != nullptr ? what.bytes(content) : counted_by_caf(content, what.name);
  if (!options.wire_overhead) return serialized;
  const auto body = serialized + std::char_traits<char>::length(what.name) + framing_bytes;
  return body + segment_header_bytes * ((body + segment_bytes - 1) / segment_bytes);
}

bool fabric_state::small(std::uint64_t bytes, const message_class& what) const {
  return bytes <= (what.own_stream ? std::max(options.own_stream_bytes, options.small_message_bytes)
                                   : options.small_message_bytes);
}

void fabric_state::send(port& to, caf::mailbox_element_ptr element) {
  const auto from = coordinator::current_host();
  if (from == to.host() || from == no_host) {
    locked_section here(mutex);
    return hand_over(here, to, from, std::move(element));
  }
  if (options.alter && !element->mid.is_response() && tampers(from)) {
    // The altered messages come here again, and pass: the flag of this thread says so.
    thread_local bool altering = false;
    if (!altering) {
      altering = true;
      const auto sender = element->sender;
      const auto address = caf::actor_cast<caf::actor>(caf::strong_actor_ptr(to.ctrl()));
      for (auto& each : options.alter(from, address, element->move_content_to_message()))
        if (each.to)
          each.to->enqueue(caf::make_mailbox_element(sender, caf::make_message_id(), {},
                                                     std::move(each.content)),
                           nullptr);
      altering = false;
      return;
    }
  }
  const auto what = options.classify(element->content());
  const auto acceptable = what.name[0] != '?' || element->mid.is_response();
  const auto bytes = acceptable ? wire_size(element->content(), what) : 0;
  if (element->mid.is_urgent_message()) element->mid = element->mid.with_normal_priority();
  locked_section here(mutex);
  if (!hosts[from].alive) {
    ++lost;
    return here.destroy_later(std::move(element));
  }
  // exit_msg, down_msg, errors and CAF's own messages are never accepted from another host.
  if (!acceptable) {
    ++refused;
    return here.destroy_later(std::move(element));
  }
  traffic[what.traffic] += bytes;
  if (!hosts[to.host()].alive) {
    ++lost;
    return here.destroy_later(std::move(element));
  }
  const endpoint target{to.host(), to.ordinal()};
  endpoint source{from, 0};
  if (element->sender && element->sender->node() == system.node())
    if (const auto* found = hosts.find(element->sender->id())) {
      if (found->where.host == from) source = found->where;
      element->sender = found->port ? found->port : hosts.port_of(element->sender);
    }
  if (options.over != nullptr && !options.shaped) {
    here.unlock();
    return options.over->carry(source, target, std::move(element), bytes, !small(bytes, what));
  }
  message_under_way item{caf::actor_cast<caf::strong_actor_ptr>(&to),
                         std::move(element),
                         source,
                         target,
                         bytes,
                         clock.now(),
                         what.name};
  if (!reach || reaches(item, what, here)) depart(std::move(item), what, here);
}

/// True if a message may depart now; sets its relay. Otherwise the message is held or lost.
bool fabric_state::reaches(message_under_way& what, const message_class& kind,
                           locked_section& here) {
  const auto pair = pair_of(what.from.host, what.to.host);
  // A held message keeps later ones of its pair behind it, until an event releases them all.
  if (const auto before = held.find(pair); before != held.end()) {
    before->second.push_back({std::move(what), kind});
    return false;
  }
  const auto answer = reach->ask(what.from.host, what.to.host, what.bytes, clock.now());
  switch (answer.what) {
  case nat_rules::answer::kind::go:
    what.relay = answer.relay;
    return true;
  case nat_rules::answer::kind::wait:
    held[pair].push_back({std::move(what), kind});
    clock.at(answer.ready, [this, pair] { release(pair); });
    return false;
  case nat_rules::answer::kind::never:
    traffic[kind.traffic] -= what.bytes;
    here.destroy_later(std::move(what));
    return false;
  }
  return false;
}

void fabric_state::release(std::uint64_t pair) {
  locked_section here(mutex);
  auto found = held.extract(pair);
  if (found.empty()) return;
  for (auto& each : found.mapped()) {
    if (!hosts[sender_of(pair)].alive || !hosts[receiver_of(pair)].alive) {
      ++lost;
      here.destroy_later(std::move(each.what));
    } else if (reaches(each.what, each.kind, here)) {
      depart(std::move(each.what), each.kind, here);
    }
  }
}

void fabric_state::depart(message_under_way item, const message_class& kind, locked_section& here) {
  const bool as_small = small(item.bytes, kind);
  const auto number = messages.keep(std::move(item));
  if (as_small) return depart_small(number, kind);
  if (!bulk.append(number)) return;
  bulk_effects around(*this, here);
  bulk.begin(number, flow_time(here), around);
}

void fabric_state::depart_small(std::uint32_t number, const message_class& kind) {
  auto& message = messages[number];
  const auto from = message.from.host, to = message.to.host, relay = message.relay;
  const auto bytes = message.bytes;
  if (failures.any_cut() && blocked(from, to, relay))
    return blocked_pair_of(from, to, relay).small.push_back(number);
  auto& sending = hosts[from];
  const auto now = clock.now();
  auto begin = std::max(sending.small_free, now);
  if (options.model == transfer_model::tcp) {
    const auto ahead = bulk.transfers_on(sending.uplink);
    if (ahead > 0)
      begin =
          std::max(begin, now + transmission_time(ahead * (segment_bytes + segment_header_bytes),
                                                  sending.up));
  }
  message.left = sending.small_free = begin + transmission_time(bytes, sending.up);
  auto delay = small_delay(from, relay == no_host ? to : relay, bytes, kind);
  if (relay != no_host) {
    delay += transmission_time(bytes, hosts[relay].up);
    delay += small_delay(relay, to, bytes, kind);
  }
  arrive_small(number, delay);
}

/// The delay of a small message. Counts duplicates and retransmissions as traffic.
duration fabric_state::small_delay(host_index from, host_index to, std::uint64_t bytes,
                                   const message_class& what) {
  const auto drawn = ways.draw_small(from, to, bytes);
  if (drawn.copies > 0) traffic[what.traffic] += drawn.copies * bytes;
  return drawn.delay + bulk.queueing_delay(from, to, clock.now());
}

void fabric_state::arrive_small(std::uint32_t number, duration delay) {
  const auto& message = messages[number];
  const auto at = small_messages.in_order(pair_of(message.from.host, message.to.host),
                                          message.left + delay, clock.now());
  clock.arrive_at(at, number);
}

void fabric_state::arrive(std::uint32_t number) {
  locked_section here(mutex);
  auto what = messages.take(number);
  if (what.line != no_index) bulk.arrived(what.line);
  const auto& source = hosts[what.from.host];
  if (!hosts[what.to.host].alive || (!source.alive && source.died_at < what.left)) {
    ++lost;
    return here.destroy_later(std::move(what));
  }
  if (options.over != nullptr) {
    here.unlock();
    return options.over->carry(what.from, what.to, std::move(what.element), what.bytes,
                               what.line != no_index);
  }
  here.report(
      {event_kind::message, clock.now(), what.sent, what.from, what.to, what.type, what.bytes});
  hand_over(here, port_at(what.address), what.to.host, std::move(what.element));
}

/// Releases the lock.
void fabric_state::hand_over(locked_section& here, port& to, host_index on_behalf,
                             caf::mailbox_element_ptr element) {
  const auto actor = to.actor();
  here.unlock();
  acting_as as{on_behalf};
  if (actor) {
    actor->enqueue(std::move(element), nullptr);
    return;
  }
  // The host lives but the actor has ended: a request is refused, as by a closed port. The refusal
  // is an event, so that an asker on the same host does not see it before it has asked.
  if (element->mid.is_request() && element->sender)
    clock.at(clock.now(), [asker = element->sender, answer = element->mid.response_id(),
                           on_behalf] {
      acting_as as{on_behalf};
      asker->enqueue(caf::make_mailbox_element(nullptr, answer, {},
                                               caf::make_error(caf::sec::request_receiver_down)),
                     nullptr);
    });
}

void fabric::note_arrival(host_index receiver) noexcept {
  before_arrival();
  const auto running = coordinator::current_host();
  if (running != no_host && running != receiver) ++state_->bypassed;
}

// -- flows ----------------------------------------------------------------------------------------

duration fabric_state::flow_time(locked_section& here) {
  // On the wall clock, completions may be served late. Transfers that have ended by now must be
  // taken out first.
  const auto now = clock.now();
  if (clock.mode() == time_mode::wall_clock) {
    bulk_effects around(*this, here);
    bulk.finish(now, around);
  }
  return now;
}

void fabric_state::settle() {
  std::lock_guard guard(mutex);
  if (!bulk.take_changed()) return;
  const auto next = bulk.next_event();
  if (next_flow_event != 0) {
    if (next && *next == next_flow_time) return;
    clock.cancel(next_flow_event);
    next_flow_event = 0;
  }
  if (!next) return;
  next_flow_time = *next;
  next_flow_event = clock.at(*next, [this] { flows_due(); });
}

void fabric_state::flows_due() {
  locked_section here(mutex);
  next_flow_event = 0;
  bulk_effects around(*this, here);
  bulk.note_change(around);
  bulk.finish(clock.now(), around);
}

// -- counters -------------------------------------------------------------------------------------

std::uint64_t fabric::traffic_bytes(std::size_t traffic_class) const {
  return state_->traffic[traffic_class];
}
std::uint64_t fabric::received_bytes(std::size_t traffic_class) const {
  return state_->received[traffic_class];
}
std::uint64_t fabric::bypassed() const noexcept {
  return state_->bypassed;
}
std::uint64_t fabric::refused() const noexcept {
  return state_->refused;
}
std::uint64_t fabric::lost() const noexcept {
  return state_->lost;
}
std::uint64_t fabric::given_up() const noexcept {
  return state_->given_up;
}

} // namespace shoal::netem
