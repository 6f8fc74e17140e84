#include "netem/wire/remote_hosts.hpp"

#include <chrono>
#include <iterator>
#include <utility>

namespace shoal::netem::wire {

void remote::clear_outbox() {
  outbox.clear();
  outbox_bytes = 0;
}

void remote::way_failed() {
  if (!std::exchange(is_told, false)) return;
  failed = {{std::exchange(address, {}), std::exchange(relay, no_host)}, false};
}

connected_peer remote::as_connected_peer(duration now) const {
  connected_peer out{host, name, address, service, {}, {}, 0, 0};
  if (!up) return out;
  if (const auto over = up->relay.lock()) out.relay = over->theirs.name;
  out.round_trip = up->round_trip;
  const auto rates = up->rates(now);
  out.sends = rates.sends;
  out.receives = rates.receives;
  return out;
}

remote& remote_hosts::of(host_index host) {
  auto& out = hosts_[host];
  if (out.host == no_host) {
    out.host = host;
    out.node = node_of_(host);
    out.address = address_of_(host);
  }
  return out;
}

remote* remote_hosts::find(host_index host) {
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? nullptr : &found->second;
}

remote* remote_hosts::find(const node_key& node) {
  for (auto& [host, each] : hosts_)
    if (each.node == node) return &each;
  return nullptr;
}

std::shared_ptr<host_link> remote_hosts::direct_link(const node_key& node) {
  const auto* r = find(node);
  return r != nullptr && r->up && !r->up->relayed ? r->up : nullptr;
}

void remote_hosts::prune(duration now) {
  constexpr duration kept = std::chrono::hours(1);
  for (auto at = hosts_.begin(); at != hosts_.end();) {
    auto& r = at->second;
    const bool used =
        r.up || r.dialling || r.attempts.trying() || !r.outbox.empty() || !r.watching.empty();
    if (used)
      r.unused_since.reset();
    else if (!r.unused_since)
      r.unused_since = now;
    at = !used && now - *r.unused_since > kept ? hosts_.erase(at) : std::next(at);
  }
}

bool remote_hosts::is_up(host_index host) const {
  const auto found = hosts_.find(host);
  return found != hosts_.end() && found->second.up;
}

std::vector<connected_peer> remote_hosts::connected_peers(duration now) const {
  std::vector<connected_peer> out;
  for (const auto& [host, each] : hosts_)
    if (each.up) out.push_back(each.as_connected_peer(now));
  return out;
}

verdict remote_hosts::check_name(const hello& theirs, duration now, duration detection_time) const {
  for (const auto& [host, each] : hosts_) {
    if (each.name != theirs.name || each.node.incarnation == theirs.incarnation) continue;
    const bool lives = each.up && now - each.up->pipes[0].heard < detection_time;
    if (each.node.incarnation > theirs.incarnation || lives)
      return {refusal::name_taken, "there is a host with the name " + theirs.name +
                                       (each.address.empty() ? "" : ", at " + each.address)};
  }
  return {};
}

} // namespace shoal::netem::wire
