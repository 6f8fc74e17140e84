// One part whose reducer may be lost, as a member sees it: which members claim the part, and which
// chunks they asked us for. If we claim the part, also which chunks some member holds already, and
// which chunks we have to reduce again. A part_recovery decides; butterfly_recovery.cpp sends.
#pragma once

#include "actors/averaging/part_reduction.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace shoal::actors {

class part_recovery {
public:
  // -- another member claims the part
  // ---------------------------------------------------------------

  /// The member wants to hear when we hold the whole part.
  void claimed_by(std::uint32_t member) { claimants_.insert(member); }
  /// Those members, once.
  std::set<std::uint32_t> take_claimants() { return std::exchange(claimants_, {}); }
  /// The member asks for one of `count` chunks, a finished one or our slice of it. False if it
  /// asked before: a member that could ask again and again would have our line for itself.
  bool give(std::uint32_t member, bool reduced, std::uint32_t chunk, std::uint32_t count);

  // -- we reduce the part
  // ---------------------------------------------------------------------------

  /// From now on we reduce chunks of the part, `these` at once.
  void reduce(chunk_set these) { reducing_ = std::move(these); }
  bool reduces() const noexcept { return !reducing_.empty(); }
  const chunk_set& reducing() const noexcept { return reducing_; }
  /// The member says which chunks it holds.
  void reported(std::uint32_t member, chunk_set held) { reports_.emplace(member, std::move(held)); }
  bool has_reported(std::uint32_t member) const { return reports_.contains(member); }
  /// The member holds the whole part.
  void complete_at(std::uint32_t member) { complete_.insert(member); }
  /// The member has said which chunks it holds.
  bool has_spoken(std::uint32_t member) const {
    return reports_.contains(member) || complete_.contains(member);
  }

  struct plan {
    std::map<std::uint32_t, chunk_set> fetch; ///< by member, what to ask it for
    chunk_set left;                           ///< chunks that nobody said it holds
    bool any_left() const;
  };
  /// Plans for the chunks that we neither hold, nor reduce, nor asked a member for. A chunk in
  /// `fetch` is in no later plan unless its holder is lost. Requires: reduces().
  plan gather(const std::function<bool(std::uint32_t chunk)>& held);
  /// We reduce these chunks, too.
  void reduce_also(const chunk_set& these);
  /// Whether we asked the member for this finished chunk.
  bool fetches(std::uint32_t chunk, std::uint32_t member) const;

  void lose(std::uint32_t member);

private:
  std::set<std::uint32_t> claimants_;
  std::map<std::pair<std::uint32_t, bool>, chunk_set> given_;
  std::map<std::uint32_t, chunk_set> reports_;
  std::set<std::uint32_t> complete_;
  std::map<std::uint32_t, std::uint32_t> fetched_; // chunk -> from whom
  chunk_set reducing_;                             // chunks that were given to the reduction
};

} // namespace shoal::actors
