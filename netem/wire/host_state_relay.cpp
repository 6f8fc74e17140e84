#include "netem/wire/host_state.hpp"
#include "netem/wire/relayed_pipe.hpp"

namespace shoal::netem::wire {

namespace {

/// The most bytes that may wait at a relay for one host.
constexpr std::size_t most_relayed = std::size_t{32} << 20; // bytes

/// The links over one relay that are not up yet, and the links with one host over it.
constexpr std::size_t most_relayed_waiting = 128, most_relayed_of_one = 4;

frame end_of(const node_key& other, std::uint64_t link) {
  return frame_writer(frame_kind::relay_end).put(other).put(link).done();
}

} // namespace

host_state::relayed_target host_state::relayed_came(const link_ptr& of, const relayed_head& head,
                                                    const payload& inner, duration now,
                                                    deferred& later) {
  if (auto known = links.over_relay(of, head.other, head.link)) return {std::move(known)};
  if (head.other == own_.node) return {}; // the link that the frame belongs to has ended
  if (passing_.offered()) {
    const bool fits = passing_.fits(inner.size());
    const auto to = fits ? hosts.direct_link(head.other) : nullptr;
    const bool bulk = head.which == 1;
    const auto from = hosts.of(of->host).node;
    const bool passes =
        to != nullptr && to->pipes[head.which].through->queued_bytes() <= most_relayed;
    if (!passes || !passing_.passed(from, head.other, head.link, inner.size())) {
      if (!fits) all_.count("relay_spent");
      if (passes) all_.count("relay_full");
      of->send(bulk, end_of(head.other, head.link), now);
      return {};
    }
    all_.relayed_bytes += inner.size();
    // The relay states the sender, so the sender cannot choose another name.
    pace_.put(*to, bulk, {to_bytes(relayed_head{head.which, from, head.link}), {inner}}, now);
    pump(now, later);
    return {};
  }
  if (own_.listens) return {}; // others can dial this host, so nobody needs a relay to reach it
  if (of->theirs.relays == 0) return {}; // the host did not offer to relay
  // A new link begins with a hello, on both pipes.
  const auto first = keys().key ? frame_kind::greeting : frame_kind::hello;
  if (std::to_integer<std::uint8_t>(inner.bytes()[0]) != static_cast<std::uint8_t>(first))
    return {};
  if (!may_begin(of, head.other, now)) {
    all_.count("relay_full");
    of->send(head.which == 1, end_of(head.other, head.link), now);
    return {};
  }
  auto fresh = link_over(of, own_.node, head.other, head.link, false, keys(), around_.now);
  fresh->since = now;
  links.add(fresh);
  return {std::move(fresh), true};
}

bool host_state::may_begin(const link_ptr& relay, const node_key& other, duration now) {
  std::size_t waiting = 0, of_other = 0;
  for (const auto& each : links.over_relay(relay)) {
    if (!each->up) ++waiting;
    if (each->relayed == other) ++of_other;
  }
  return waiting < most_relayed_waiting && of_other < most_relayed_of_one &&
         relay->relayed_begins.take(1, now);
}

host_state::link_ptr host_state::relay_ended(const link_ptr& of, int which,
                                             const relay_end_frame& what, duration now) {
  if (auto own = links.over_relay(of, what.other, what.link)) return own;
  if (!passing_.offered()) return nullptr;
  const auto from = hosts.of(of->host).node;
  passing_.ended(from, what.other, what.link);
  if (const auto to = hosts.direct_link(what.other))
    to->send(which == 1, end_of(from, what.link), now);
  return nullptr;
}

void host_state::relay_lost(const node_key& node, duration now) {
  for (const auto& each : passing_.lost(node))
    if (const auto to = hosts.direct_link(each.host))
      for (const bool bulk : {false, true}) to->send(bulk, end_of(node, each.link), now);
}

} // namespace shoal::netem::wire
