#include "actors/inference/server_pool.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <set>

namespace shoal::actors {

namespace {

constexpr double smoothing = 0.2; // weight of a new round trip in the mean
constexpr unsigned most_strikes = 8;

} // namespace

void server_pool::read(const found& m, const host& here) {
  std::set<peer_id> seen;
  for (const auto& each : m.records) {
    const auto record = server_record::unpack(each->value);
    if (!record || record->model != options_.model || !each->address ||
        record->layers.last > options_.layers)
      continue;
    const auto peer = here.peer_of(caf::actor_cast<caf::strong_actor_ptr>(each->address));
    if (peer == 0) continue;
    if (const auto gone = gone_.find(peer); gone != gone_.end()) {
      if (each->expires_utc_ns <= gone->second) continue;
      gone_.erase(gone);
    }
    seen.insert(peer);
    auto& one = servers_[peer];
    one.address = each->address;
    one.record = *record;
    one.expires_utc_ns = each->expires_utc_ns;
  }
  std::erase_if(servers_, [&](const auto& each) {
    return !seen.contains(each.first) && !each.second.watched;
  });
}

std::vector<server_view> server_pool::views(duration now) const {
  std::vector<server_view> out;
  for (const auto& [peer, one] : servers_)
    if (one.banned_until <= now && !one.record.drains && !distrusted_.contains(peer))
      out.push_back({peer, one.record.layers,
                     one.round_trip.value_or(options_.unknown_round_trip) + options_.overhead,
                     static_cast<double>(one.record.layer_ns) * 1e-9, one.record.cache_left});
  return out;
}

server_pool::server* server_pool::find(peer_id peer) {
  const auto found = servers_.find(peer);
  return found == servers_.end() ? nullptr : &found->second;
}

void server_pool::ban(peer_id peer, duration now) {
  if (auto* one = find(peer)) {
    one->banned_until = now + options_.ban * (1U << std::min(one->strikes, most_strikes));
    ++one->strikes;
  }
}

void server_pool::answered(peer_id peer, std::optional<double> round_trip) {
  auto* one = find(peer);
  if (one == nullptr) return;
  one->strikes = 0;
  if (!round_trip) return;
  auto& mean = one->round_trip;
  mean = mean ? *mean + smoothing * (*round_trip - *mean) : *round_trip;
}

std::optional<peer_id> server_pool::gone(const caf::actor_addr& address) {
  for (auto at = servers_.begin(); at != servers_.end(); ++at)
    if (caf::actor_cast<caf::actor_addr>(at->second.address) == address) {
      const auto out = at->first;
      gone_.insert_or_assign(out, at->second.expires_utc_ns);
      servers_.erase(at);
      return out;
    }
  return std::nullopt;
}

} // namespace shoal::actors
