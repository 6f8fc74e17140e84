// The fabric's failures: cuts and pauses, the messages that they hold up, and the notices to
// observers.
#include "netem/fabric_state.hpp"

#include <caf/actor_cast.hpp>
#include <caf/error.hpp>
#include <caf/exit_reason.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

namespace shoal::netem {

// -- cuts -----------------------------------------------------------------------------------------

/// True if a cut blocks messages, on the way over `relay` if there is one.
bool fabric_state::blocked(host_index from, host_index to, host_index relay) const {
  if (relay != no_host) return blocked(from, relay) || blocked(relay, to);
  return failures.blocked(hosts[from].where.machine, hosts[to].where.machine);
}

std::uint64_t fabric::add_cut(cut what) {
  auto& s = *state_;
  locked_section here(s.mutex);
  const auto now = s.flow_time(here);
  const auto number = s.failures.add_cut(std::move(what), now);
  fabric_state::bulk_effects around(s, here);
  s.bulk.stop_blocked(now, around);
  s.clock.at(now + s.options.detection_time, [&s] { s.suspect(); });
  return number;
}

void fabric::refuse(machine_index a, machine_index b) {
  auto& s = *state_;
  locked_section here(s.mutex);
  const auto now = s.flow_time(here);
  if (a == b || !s.failures.refuse(a, b, now)) return;
  const auto one = s.hosts.running(a), other = s.hosts.running(b);
  if (one == no_host || other == no_host) return;
  fabric_state::bulk_effects around(s, here);
  for (const auto pair : {pair_of(one, other), pair_of(other, one)})
    s.bulk.stop_pair(pair, now, around);
  s.clock.at(now + s.options.detection_time, [&s, one, other] {
    s.suspect(one, other);
    s.suspect(other, one);
  });
}

void fabric::heal(std::uint64_t number) {
  auto& s = *state_;
  locked_section here(s.mutex);
  s.failures.remove_cut(number);
  const auto open = [&](std::uint64_t pair, const blocked_pair& what) {
    return !s.blocked(sender_of(pair), receiver_of(pair), what.relay);
  };
  std::optional<std::uint64_t> last;
  while (const auto found = s.failures.take_open(last, open)) {
    last = found->first;
    s.go_on(found->first, found->second);
  }
}

/// The entry of a blocked pair. The first waiting message starts the detection time.
blocked_pair& fabric_state::blocked_pair_of(host_index from, host_index to, host_index relay) {
  const auto pair = pair_of(from, to);
  const auto now = clock.now();
  const auto found = failures.blocked_pair_of(pair, relay, now);
  if (found.fresh)
    clock.at(now + options.detection_time,
             [this, pair, number = found.what.number] { give_up(pair, number); });
  return found.what;
}

void fabric_state::lose(std::uint32_t message, std::atomic<std::uint64_t>& count,
                        locked_section& here) {
  ++count;
  here.destroy_later(messages.take(message));
}

void fabric_state::give_up(std::uint64_t pair, std::uint64_t number) {
  locked_section here(mutex);
  const auto what = failures.give_up(pair, number);
  if (!what) return;
  for (const auto message : what->small) lose(message, given_up, here);
  bulk.forget_window(pair);
  bulk_effects around(*this, here, given_up);
  bulk.break_line(pair, flow_time(here), around);
}

/// Waiting messages go at the next retransmission. The timeout doubles from one retransmission to
/// the next.
void fabric_state::go_on(std::uint64_t pair, const blocked_pair& what) {
  const auto from = sender_of(pair), to = receiver_of(pair);
  const auto now = clock.now();
  auto again = now;
  if (options.model == transfer_model::tcp) {
    const auto timeout = ways.retransmission_timeout(from, to);
    auto wait = timeout;
    while (what.since + wait < now) wait = 2 * wait + timeout;
    again = what.since + wait;
  }
  for (const auto message : what.small) {
    messages[message].left = again;
    arrive_small(message, ways.drawn_delay(from, to, what.relay));
  }
  if (const auto stopped = bulk.stopped(pair))
    clock.at(again, [this, held = *stopped] { go_on(held); });
}

void fabric_state::go_on(const bulk_lines::stopped_transfer& what) {
  locked_section here(mutex);
  bulk_effects around(*this, here);
  bulk.go_on(what, flow_time(here), around);
}

// -- suspicion ------------------------------------------------------------------------------------

bool fabric_state::silent(host_index a, host_index b) const {
  const auto now = clock.now();
  return failures.still(b, now) ||
         failures.cut_off(hosts[a].where.machine, hosts[b].where.machine, now);
}

/// Observers hear `unreachable` of every host that has given no sign of life for the detection
/// time.
void fabric_state::suspect() {
  struct suspicion {
    endpoint of;
    std::uint64_t observer;
    caf::strong_actor_ptr at;
  };
  std::vector<suspicion> told;
  {
    std::lock_guard guard(mutex);
    hosts.for_each_actor([&](const published_actor& actor) {
      if (!actor.port) return;
      auto& of = port_at(actor.port);
      for (const auto& who : of.observers())
        if (who.host != no_host && who.host != of.host() && silent(who.host, of.host()))
          told.push_back({actor.where, who.number, actor.port});
    });
  }
  std::sort(told.begin(), told.end(), [](const suspicion& a, const suspicion& b) {
    return std::tuple(a.of.host, a.of.ordinal, a.observer) <
           std::tuple(b.of.host, b.of.ordinal, b.observer);
  });
  for (const auto& each : told)
    tell(port_at(each.at), each.observer, caf::make_error(caf::exit_reason::unreachable));
}

void fabric_state::suspect(host_index of, host_index observer) {
  std::vector<std::pair<caf::strong_actor_ptr, std::uint64_t>> told; // in the order of ordinals
  {
    std::lock_guard guard(mutex);
    for (const auto& [ordinal, actor] : hosts[of].actors) {
      const auto* published = hosts.find(actor->id());
      if (published == nullptr || !published->port) continue;
      for (const auto& who : port_at(published->port).observers())
        if (who.host == observer) told.emplace_back(published->port, who.number);
    }
  }
  for (const auto& [at, number] : told)
    tell(port_at(at), number, caf::make_error(caf::exit_reason::unreachable));
}

// -- pauses ---------------------------------------------------------------------------------------

bool fabric::pause(host_index host) {
  auto& s = *state_;
  std::lock_guard guard(s.mutex);
  if (!s.hosts[host].alive || s.failures.paused(host)) return false;
  const auto now = s.clock.now();
  s.failures.pause(host, now);
  s.clock.hold(host);
  s.clock.at(now + s.options.detection_time, [&s] { s.suspect(); });
  return true;
}

bool fabric::resume(host_index host) {
  auto& s = *state_;
  std::vector<failure_detector::action> waiting;
  {
    std::lock_guard guard(s.mutex);
    if (!s.failures.paused(host)) return false;
    waiting = s.failures.resume(host, s.clock.now());
  }
  s.clock.release(host);
  for (const auto& action : waiting) action();
  return true;
}

bool fabric::paused(host_index host) const {
  std::lock_guard guard(state_->mutex);
  return state_->failures.paused(host);
}

duration fabric::paused_time(host_index host) const {
  std::lock_guard guard(state_->mutex);
  return state_->failures.paused_time(host, state_->clock.now());
}

void fabric::when_resumed(host_index host, std::function<void()> action) {
  std::unique_lock guard(state_->mutex);
  if (state_->failures.paused(host)) return state_->failures.when_resumed(host, std::move(action));
  if (!state_->hosts[host].alive) return;
  guard.unlock();
  action();
}

// -- observers ------------------------------------------------------------------------------------

void fabric_state::actor_ended(caf::actor_id id) {
  locked_section here(mutex);
  auto ended = hosts.ended(id);
  if (!ended) return;
  here.destroy_later(std::move(ended->actor));
  if (!ended->what.port) return;
  const auto where = ended->what.where;
  auto& of = port_at(ended->what.port);
  here.destroy_later(of.take_actor());
  for (auto& who : of.observers().take_all())
    // With a carrier, observers on other hosts learn of the end from the carrier.
    if (options.over == nullptr || who.host == where.host || who.host == no_host)
      notify(of, std::move(who), {});
    else
      of.observers().add(std::move(who));
  here.destroy_later(std::move(ended->what.port));
  here.unlock();
  if (options.over != nullptr) options.over->ended(where);
}

void fabric_state::observe(port& of, caf::attachable_ptr hook) {
  locked_section here(mutex);
  auto who = of.observers().make(std::move(hook), coordinator::current_host());
  const bool from_outside = who.host != no_host && who.host != of.host();
  if (options.over != nullptr && from_outside) {
    const auto from = who.host;
    of.observers().add(std::move(who));
    // The port is kept until its observers are told, even if the actor ends.
    hosts[of.host()].ports.try_emplace(of.ordinal(), caf::actor_cast<caf::strong_actor_ptr>(&of));
    here.unlock();
    return options.over->watch(from, {of.host(), of.ordinal()});
  }
  if (of.actor() && !(from_outside && silent(who.host, of.host()))) {
    if (of.observers().needs_collection()) collect_dead_observers(of, here);
    return of.observers().add(std::move(who));
  }
  // If the actor's own host answers, or a later incarnation does, the answer says that the actor is
  // gone.
  const auto& there = hosts[of.host()];
  const bool answered =
      !of.actor() && (there.alive || hosts.running(there.where.machine) != no_host) &&
      who.host != no_host && !blocked(who.host, of.host()) && !blocked(of.host(), who.host);
  notify(of, std::move(who),
         answered ? caf::error{} : caf::make_error(caf::exit_reason::unreachable));
}

/// Removes observers on dead hosts, which hear nothing any more and never stop observing.
void fabric_state::collect_dead_observers(port& of, locked_section& here) {
  auto dead = of.observers().take_if([this](const observer& o) {
    return o.notice == 0 && o.host != no_host && !hosts[o.host].alive;
  });
  for (auto& each : dead) here.destroy_later(std::move(each.hook));
  of.observers().collected();
}

std::size_t fabric_state::forget(port& of, const caf::attachable::token& what) {
  std::vector<observer> gone;
  {
    std::lock_guard guard(mutex);
    gone = of.observers().take_if([&](const observer& o) { return o.hook->matches(what); });
  }
  for (const auto& each : gone)
    if (each.notice != 0) clock.cancel(each.notice);
  return gone.size();
}

/// The time at which an observer can know of an actor's end.
duration fabric_state::notice_time(const port& of, const observer& who) const {
  const auto& host = hosts[of.host()];
  const auto now = clock.now();
  if (who.host == of.host()) return now;
  const bool silently =
      (!host.alive && host.died_by == kill_scope::machine) ||
      (who.host != no_host && (blocked(of.host(), who.host) || silent(who.host, of.host())));
  if (silently) return now + options.detection_time;
  if (who.host == no_host) return now;
  // The end of a connection does not overtake messages in flight on it.
  const auto pair = pair_of(of.host(), who.host);
  return bulk.behind_last(pair,
                          small_messages.behind_last(pair, now + ways.delay(of.host(), who.host)));
}

void fabric_state::notify(port& of, observer who, const caf::error& reason) {
  who.notice = clock.at(notice_time(of, who),
                        [this, self = caf::actor_cast<caf::strong_actor_ptr>(&of), reason,
                         number = who.number] { tell(port_at(self), number, reason); });
  of.observers().add(std::move(who));
}

void fabric_state::tell(port& of, std::uint64_t number, const caf::error& reason) {
  locked_section here(mutex);
  auto who = of.observers().take(number);
  if (!who) return;
  if (who->host != no_host && !hosts[who->host].alive)
    return here.destroy_later(std::move(who->hook));
  report(here, event_kind::down, {of.host(), of.ordinal()}, {who->host, 0}, "down");
  here.unlock();
  acting_as as{who->host};
  who->hook->actor_exited(reason, nullptr);
}

} // namespace shoal::netem
