#include "netem/wire/host_state.hpp"

namespace shoal::netem::wire {

host_state::frame_target host_state::frame_came(const link_ptr& of, int which, frame_kind kind,
                                                std::size_t bytes, duration now) {
  auto link = links.whole(of);
  auto& direction = link->pipes[which];
  const link_phase phase{link->up, link->closed || link->refused_by_us, direction.hello,
                         link->dialled, direction.list};
  const auto step = step_of(phase, kind, bytes);
  if (step == frame_step::list) direction.list = true;
  if (step != frame_step::drop) direction.heard = now;
  return {std::move(link), step};
}

bool host_state::take_hello(host_link& of, hello theirs) {
  if (of.up || of.closed) return false;
  of.theirs = std::move(theirs);
  return true;
}

verdict host_state::check_name(const hello& theirs, const std::string& identity,
                               duration now) const {
  if (faults.is_banned(identity.empty() ? theirs.name : identity, now))
    return {refusal::banned, "it broke the protocol"};
  return hosts.check_name(theirs, now, all_.options.detection_time);
}

std::optional<host_state::refused_link> host_state::refuse(host_link& of, duration now) {
  if (std::exchange(of.refused_by_us, true)) return {};
  of.since = now; // the time limit for the other side to close starts now
  return refused_link{pipes_of(of), of.theirs.name};
}

host_state::connected host_state::connect(const link_ptr& of, host_index host,
                                          const caf::node_id& id, caf::actor service,
                                          std::optional<std::uint64_t> revocation_list_number,
                                          duration now) {
  connected out;
  if (closed_ || of->closed) return out;
  out.done = true;
  of->host = host;
  of->node = id;
  of->incomplete.count_in(all_.incomplete);
  of->up = true;
  for (auto& direction : of->pipes) direction.heard = now;
  for (auto& sent : of->last_sent) sent = now;
  // The hello must be the first frame, and the link must be up before the other side's answer.
  if (!of->dialled) {
    of->said_service = service_;
    for (const bool bulk : {false, true}) of->send(bulk, to_frame(own_hello(of->token)), now);
  }
  ++all_.made;
  if (revocation_list_number)
    of->send(false,
             frame_writer(frame_kind::revocation_list_number).put(*revocation_list_number).done(),
             now);
  // introduce() reaches only links that are up.
  if (of->said_service != service_)
    of->send(false, frame_writer(frame_kind::introduce).put(service_).done(), now);
  auto& r = hosts.of(host);
  r.name = of->theirs.name;
  if (!of->theirs.address.empty()) r.address = of->theirs.address;
  r.is_told = false;
  r.asked.clear();
  if (service) r.service = std::move(service);
  // A side that dials again uses the newer link. Two links that were dialled from both sides may
  // both be in use. A link over a relay, which may repeat an old hello, replaces no direct one.
  auto older = links.same_way(*of);
  const bool again = r.up && std::find(older.begin(), older.end(), r.up) != older.end();
  // The side that dialled twice ends the older link. If it saw that end before the newer link is up
  // on its side, it would take this host for lost.
  if (!of->dialled && !older.empty()) older.pop_back();
  out.replaced = std::move(older);
  if (!r.up || again) {
    const bool first = !r.up;
    use(r, of);
    r.attempts.linked();
    if (first) out.first = r.as_connected_peer(now);
    send_waiting(r, *of, now);
  }
  for (auto& [other, each] : hosts) {
    if (each.dialling != of) continue;
    each.dialling = nullptr;
    // Another host answered there.
    if (other != host) each.way_failed();
  }
  joins.linked();
  joins.connected(*of, host);
  for (const auto& [other, old] : hosts)
    if (other != host && old.name == of->theirs.name) out.dead.push_back(other);
  return out;
}

std::optional<connected_peer> host_state::introduced(const host_link& of, caf::actor service,
                                                     duration now) {
  auto* r = hosts.find(of.host);
  if (r == nullptr) return {};
  r->service = std::move(service);
  return r->as_connected_peer(now);
}

std::pair<host_state::link_ptr, host_state::pipe_end> host_state::pipe_closed(const link_ptr& given,
                                                                              int which) {
  auto of = links.whole(given);
  of->pipes[which].closed = true;
  const auto& other = of->pipes[1 - which];
  const bool more = other.through && !other.closed && !of->closed;
  if (of->refused_by_us && more) return {std::move(of), pipe_end::wait};
  const bool leaves = of->up && !of->closed && (of->pipes[which].left || other.left);
  const auto end = !leaves ? pipe_end::lost : more && !other.left ? pipe_end::wait : pipe_end::left;
  return {std::move(of), end};
}

bool host_state::goodbye_came(host_link& of, int which) {
  of.pipes[which].left = true;
  const auto& other = of.pipes[1 - which];
  return other.left || other.closed;
}

host_state::removed host_state::remove(const link_ptr& given, duration now, bool nothing_listens) {
  removed out;
  const auto of = links.close(given);
  if (!of) return out;
  out.link = of;
  out.pipes = pipes_of(*of);
  if (!of->dialled && !of->up && !of->refused_by_us && is_open())
    all_.count(name_of(refusal::no_hello));
  if (auto* r = of->up ? hosts.find(of->host) : nullptr; r != nullptr && r->up == of) {
    use(*r, links.up_with(of->host));
    if (r->up) {
      for (const auto ordinal : r->watching)
        r->up->send(false, frame_writer(frame_kind::watch).put(ordinal).done(), now);
    } else {
      ++all_.lost;
      out.lost = r->as_connected_peer(now);
      r->watching.clear();
    }
  }
  for (auto& [host, r] : hosts) {
    if (r.dialling != of) continue;
    r.dialling = nullptr;
    // The address that another host told may be a wrong one, so the others are asked at once.
    const bool told = r.is_told;
    r.attempts.failed(nothing_listens && !told);
    r.way_failed();
    r.failed.refused = nothing_listens && told;
    if (r.failed.refused) r.attempts.try_at(now);
    if (of->refused != refusal::none) r.attempts.try_at(now + longest_back_off);
    if (nothing_listens) out.tick_at = r.attempts.has_ended(now) ? now : r.attempts.next();
  }
  out.cannot_join = joins.lost(*of, of->refused, now, 3 * all_.options.detection_time);
  out.orphans = links.over_relay(of);
  if (passing_.offered() && out.lost) relay_lost(hosts.of(out.lost->host).node, now);
  return out;
}

void host_state::forget(host_index host) {
  if (auto* r = hosts.find(host)) {
    use(*r, nullptr);
    hosts.erase(host);
  }
  joins.forget(host);
}

} // namespace shoal::netem::wire
