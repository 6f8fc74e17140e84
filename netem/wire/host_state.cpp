#include "netem/wire/host_state.hpp"

#include "netem/wire/address.hpp"
#include "netem/wire/relayed_pipe.hpp"

#include <algorithm>
#include <utility>

namespace shoal::netem::wire {

namespace {

/// The time in which linked hosts answer a question: twice the longest round trip.
duration answer_time(const link_list& links) {
  constexpr duration unmeasured = std::chrono::milliseconds(100);
  duration longest = std::chrono::milliseconds(10);
  for (const auto& each : links.all())
    if (each->up)
      longest = std::max(longest, each->round_trip > duration{} ? each->round_trip : unmeasured);
  return std::min<duration>(2 * longest, std::chrono::milliseconds(500));
}

frame watch_of(std::uint32_t ordinal) {
  return frame_writer(frame_kind::watch).put(ordinal).done();
}

} // namespace

host_state::host_state(context& all, own_host own, surroundings around)
    : hosts(around.node_of, [&all](host_index host) { return all.address_of(host); }), all_(all),
      own_(std::move(own)), around_(std::move(around)), tokens_(around_.seed), pace_(own_.uplink),
      passing_(own_.relay_bytes) {}

hello host_state::own_hello(std::uint64_t token) const {
  hello out;
  out.link = token;
  out.name = own_.name;
  out.incarnation = own_.incarnation;
  out.address = own_.address;
  out.utc_ns = all_.options.utc_ns();
  out.scenario = all_.scenario;
  out.service = service_;
  out.relays = passing_.offered() ? 1 : 0;
  return out;
}

void host_state::introduce(std::uint64_t service, duration now) {
  service_ = service;
  for (const auto& each : links.all())
    if (each->up) each->send(false, frame_writer(frame_kind::introduce).put(service).done(), now);
}

std::vector<std::shared_ptr<pipe>> host_state::leave(duration now) {
  leaving_ = true;
  joins.clear();
  std::vector<std::shared_ptr<pipe>> out;
  for (const auto& each : links.all()) {
    // The goodbye is the last frame on both pipes, since one pipe may close before the other's
    // frames have come.
    if (each->up)
      for (const bool bulk : {false, true})
        each->send(bulk, frame_writer(frame_kind::leaving).done(), now);
    const auto pipes = pipes_of(*each);
    out.insert(out.end(), pipes.begin(), pipes.end());
  }
  return out;
}

std::vector<std::shared_ptr<pipe>> host_state::close() {
  closed_ = true;
  std::vector<std::shared_ptr<pipe>> out;
  for (const auto& each : links.close_all()) {
    const auto pipes = pipes_of(*each);
    out.insert(out.end(), pipes.begin(), pipes.end());
  }
  for (auto& [host, r] : hosts) use(r, nullptr);
  hosts.clear();
  joins.clear();
  return out;
}

void host_state::use(remote& r, link_ptr through) {
  if (through && !r.up) ++all_.linked;
  if (!through && r.up) --all_.linked;
  r.up = std::move(through);
}

// -- sending ----

void host_state::put_own(host_link& to, bool bulk, frame what, duration now) {
  ++all_.frames_out;
  all_.bytes_out += what.size();
  to.sent += what.size();
  pace_.put(to, bulk, std::move(what), now);
}

void host_state::send(host_index to, std::vector<frame> frames, bool bulk, duration now,
                      deferred& later) {
  if (!is_open()) return;
  auto& r = hosts.of(to);
  if (r.up) {
    for (auto& each : frames) put_own(*r.up, bulk, std::move(each), now);
    if (r.up->waiting_bytes + r.up->pipes[bulk ? 1 : 0].through->queued_bytes() <=
        all_.options.most_queued)
      return pump(now, later);
    all_.count("send_queue_full");
    later.overfull = r.up;
    return;
  }
  for (auto& each : frames) {
    r.outbox_bytes += each.size();
    r.outbox.push_back({std::move(each), bulk});
  }
  if (r.outbox_bytes > all_.options.most_queued) {
    ++all_.messages_lost;
    r.clear_outbox();
  }
  reach(r, now, later);
}

void host_state::send_waiting(remote& to, host_link& over, duration now) {
  for (const auto ordinal : to.watching) over.send(false, watch_of(ordinal), now);
  for (auto& each : to.outbox) put_own(over, each.bulk, std::move(each.what), now);
  to.clear_outbox();
}

void host_state::watch(endpoint of, duration now, deferred& later) {
  if (closed_) return;
  auto& r = hosts.of(of.host);
  if (!r.watching.insert(of.ordinal).second) return;
  if (r.up) return r.up->send(false, watch_of(of.ordinal), now);
  // The frame is sent once there is a link.
  reach(r, now, later);
}

void host_state::actor_ended(std::uint32_t ordinal, duration now) {
  for (const auto& each : links.all())
    if (each->watched.erase(ordinal) > 0)
      each->send(false, frame_writer(frame_kind::ended).put(ordinal).done(), now);
}

void host_state::pump(duration now, deferred& later) {
  if (closed_) return;
  if (const auto when = pace_.pump(links.all(), now)) later.pump_at = when;
}

void host_state::pump_turn(duration now, deferred& later) {
  pace_.turn_came();
  pump(now, later);
}

void host_state::answer_where(host_link& to, const node_key& node, duration now) {
  const auto* r = hosts.find(node);
  if (r == nullptr || (r->address.empty() && !(passing_.has_budget() && hosts.direct_link(node))))
    return;
  to.send(false,
          frame_writer(frame_kind::node_at)
              .put(node)
              .put(std::string_view(r->name))
              .put(std::string_view(r->address))
              .done(),
          now);
}

void host_state::learn_where(const host_link& from, const node_at_frame& told, duration now,
                             deferred& later) {
  auto* r = hosts.find(told.node);
  if (r == nullptr || r->asked.erase(from.host) == 0 || !r->address.empty() ||
      hosts.is_up(r->relay))
    return;
  // A host that answers without an address offers to be the relay.
  const remote::way offered{told.address, told.address.empty() ? from.host : no_host};
  const bool failed = offered == r->failed.which;
  if (failed && r->failed.refused && from.host != r->teller) r->attempts.confirmed();
  if (failed || (offered.relay != no_host && from.theirs.relays == 0)) return;
  r->address = offered.address;
  r->relay = offered.relay;
  r->is_told = true;
  r->teller = from.host;
  r->attempts.told();
  r->asked.clear();
  if (r->name.empty()) r->name = told.name;
  if (!r->attempts.trying() || r->up || r->dialling) return;
  r->attempts.try_at(now);
  reach(*r, now, later);
}

// -- dialling ----

void host_state::reach(remote& r, duration now, deferred& later) {
  r.attempts.begin(now);
  if (r.dialling || !r.attempts.due(now)) return;
  r.attempts.attempted(now);
  if (!r.address.empty()) return dial(r.address, r.dialling, now, later);
  if (const auto* relay = hosts.find(r.relay); relay != nullptr && relay->up)
    return dial_over(relay->up, r, now, later);
  ask_where(r, now, later);
}

void host_state::ask_where(remote& r, duration now, deferred& later) {
  // The way that failed is good enough if no other host answers until the next attempt.
  if (!r.asked.empty()) r.failed = {};
  r.asked.clear();
  // Others may know only the address of the process that has ended, too.
  if (r.failed.refused) {
    r.attempts.try_at(now + answer_time(links));
    later.tick_at = r.attempts.next();
  }
  // Another host has named this host, so one of the linked hosts knows it.
  for (const auto& each : links.all()) {
    if (!each->up) continue;
    r.asked.insert(each->host);
    each->send(false, frame_writer(frame_kind::where_is).put(r.node).done(), now);
  }
}

void host_state::dial(const std::string& where, link_ptr& slot, duration now, deferred& later) {
  auto made = std::make_shared<host_link>();
  made->token = tokens_.next();
  made->target = where;
  for (int i = 0; i < 2; ++i) made->pipes[i].through = around_.open_pipe(where, i);
  dialled(made, slot, now, later);
}

void host_state::dial_over(const link_ptr& relay, remote& to, duration now, deferred& later) {
  auto made = link_over(relay, own_.node, to.node, tokens_.next(), true, keys(), around_.now);
  made->target = to.name.empty() ? "a host behind " + relay->theirs.name : to.name;
  dialled(made, to.dialling, now, later);
}

void host_state::dialled(const link_ptr& made, link_ptr& slot, duration now, deferred& later) {
  made->dialled = true;
  made->since = now;
  made->said_service = service_;
  links.add(made);
  slot = made;
  later.greet.push_back({made, to_frame(own_hello(made->token))});
}

// -- time ----

bool host_state::is_stopped(duration now) {
  return now - std::exchange(last_tick_, now) > all_.options.detection_time / 2;
}

host_state::due_work host_state::tick(duration now) {
  due_work out;
  const auto silence = all_.options.detection_time;
  const bool stopped = is_stopped(now);
  for (const auto& each : links.all()) {
    if (!each->up) {
      if (now - each->since > all_.options.hello_time) out.to_close.emplace_back(each, "no answer");
      continue;
    }
    each->measure(now);
    if (each->keep_alive(now, silence, stopped))
      out.to_close.emplace_back(each, "it has been silent");
  }
  for (auto& [host, r] : hosts) {
    if (!r.attempts.trying() || r.up) continue;
    if (r.attempts.expired(now, silence) || (r.attempts.has_ended(now) && !r.dialling)) {
      out.given_up.emplace_back(host, r.outbox.size());
      r.attempts.stop();
      r.clear_outbox();
      r.watching.clear();
      r.failed = {};
    } else if (!r.dialling && r.attempts.due(now)) {
      out.hosts.push_back(host);
    }
  }
  hosts.prune(now);
  out.joins = joins.due(now, [this](host_index host) { return hosts.is_up(host); });
  faults.expire(now);
  return out;
}

void host_state::dial_due(const due_work& work, duration now, deferred& later) {
  for (const auto host : work.hosts)
    if (auto* r = hosts.find(host); r != nullptr && r->attempts.trying() && !r->up)
      reach(*r, now, later);
  for (const auto entry : work.joins)
    if (const auto to = joins.begin(entry, now, all_.options.hello_time))
      dial(to->where, *to->slot, now, later);
}

} // namespace shoal::netem::wire
