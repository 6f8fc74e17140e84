// A table of what an actor of a swarm of experts knows of the other hosts: a plain state machine.
// The table tells whether a record of a host counts. A host without anything special has no entry.
#pragma once

#include "actors/experts/expert_id.hpp"
#include "actors/ids.hpp"
#include "kernels/base/units.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace shoal::actors {

class expert_hosts {
public:
  struct times {
    duration ban = std::chrono::seconds(15); ///< a host that failed gets nothing for so long
    duration record_lifetime = std::chrono::minutes(1);
  };
  expert_hosts() = default;
  explicit expert_hosts(times t) : times_(t) {}

  /// The host gets nothing for a while, as it did not answer: `bans` times the usual time.
  void failed(peer_id host, duration now, unsigned bans = 1) {
    auto& one = hosts_[host];
    one.banned_until = std::max(one.banned_until, now + bans * times_.ban);
    one.is_silent = false;
  }
  /// The host has not answered in time. It gets nothing until it is heard, has failed or is gone.
  void silent(peer_id host) { hosts_[host].is_silent = true; }
  void heard(peer_id host) {
    if (const auto found = hosts_.find(host); found != hosts_.end())
      found->second.is_silent = false;
  }
  /// The host died at that time (UTC), or was cut off. Records that it may have written before do
  /// not count. One that was cut off comes back with a later record.
  void gone(peer_id host, std::int64_t utc_ns) {
    auto& one = hosts_[host];
    one.stale_until = utc_ns + times_.record_lifetime.count();
    one.is_silent = false;
  }
  /// As gone(), for an actor that revives experts. A record may outlive its host for as long as the
  /// host liked, so for a record's lifetime none of the host's records counts.
  void died(peer_id host, std::int64_t utc_ns) {
    hosts_[host].dead_until = utc_ns + times_.record_lifetime.count();
  }
  /// The host has offered to revive the expert, and its offer was the best.
  void won(peer_id host, const expert_id& which) { hosts_[host].won.insert(which); }
  bool has_won(peer_id host, const expert_id& which) const {
    const auto found = hosts_.find(host);
    return found != hosts_.end() && found->second.won.contains(which);
  }
  /// The expert has a host, so all may offer again when that host dies.
  void forget_offers(const expert_id& which) {
    for (auto& [host, one] : hosts_) one.won.erase(which);
  }

  /// True if a record of the host that ends then (UTC) stands for a host that gets calls.
  bool counts(peer_id host, std::int64_t expires_utc_ns, std::int64_t utc_ns, duration now) const {
    if (expires_utc_ns <= utc_ns) return false;
    const auto found = hosts_.find(host);
    if (found == hosts_.end()) return true;
    const auto& one = found->second;
    return !one.is_silent && one.banned_until <= now && one.stale_until < expires_utc_ns &&
           one.dead_until < utc_ns;
  }

  /// Drops the entries that say nothing any more.
  void drop_old(std::int64_t utc_ns, duration now) {
    std::erase_if(hosts_, [&](const auto& each) {
      const auto& one = each.second;
      return !one.is_silent && one.won.empty() && one.banned_until <= now &&
             one.stale_until <= utc_ns && one.dead_until < utc_ns;
    });
  }
  std::size_t size() const noexcept { return hosts_.size(); }

private:
  struct entry {
    bool is_silent = false;
    duration banned_until{};
    std::int64_t stale_until = 0; // UTC; records that end by then do not count
    std::int64_t dead_until = 0;  // UTC; no record counts until then
    std::set<expert_id> won;
  };
  times times_;
  std::map<peer_id, entry> hosts_;
};

} // namespace shoal::actors
