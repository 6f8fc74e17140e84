// The members that a host has banned, each with the proof. The book of a machine outlives the
// processes on it.
// Thread safety: all.
#pragma once

#include "actors/ids.hpp"
#include "actors/trust/identity.hpp"
#include "actors/trust/proof.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace shoal::scenarios {

struct banned_member {
  actors::proof_in_swarm what;
  std::int64_t since_utc_ns = 0;
  std::string name; ///< the member's name in its certificate; empty if it is not known
  bool operator==(const banned_member&) const = default;
};

class ban_book {
public:
  static constexpr std::size_t most = 4096; ///< a certificate costs more than an entry

  /// True if the member was not banned before. False also if the book is full. The caller checks
  /// the proof.
  bool add(banned_member what) {
    const auto member = actors::member_of(actors::culprit_of(what.what.what));
    std::lock_guard guard(mutex_);
    if (all_.size() >= most || !all_.emplace(member, std::move(what)).second) return false;
    any_ = true;
    return true;
  }
  bool has(const actors::member_id& who) const noexcept {
    if (!any_) return false; // every message asks
    std::lock_guard guard(mutex_);
    return all_.contains(who);
  }
  bool any() const noexcept { return any_; }
  /// All entries in the order of their members.
  std::vector<banned_member> all() const {
    std::vector<banned_member> out;
    std::lock_guard guard(mutex_);
    for (const auto& [member, one] : all_) out.push_back(one);
    return out;
  }

private:
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_; // guards all_
  std::map<actors::member_id, banned_member> all_;
};

} // namespace shoal::scenarios
