// How far a stage is, by the records of its peers. A record is a claim. So an epoch counts once at
// least half of the members have reached it. A state has the votes of the members that announce the
// same bytes. In a stage of two members each of them is half. No actor and no clock.
#pragma once

#include "actors/ids.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace shoal::actors {

/// A state as the record of its holder announces it.
struct announced_state {
  std::uint64_t epoch = 0;
  state_id state;
  id128 content; ///< stage_content() of the state
  auto operator<=>(const announced_state&) const = default;
};

class stage_votes {
public:
  /// A member has one vote, that of its latest state, however many nodes it runs.
  void add(member_id who, const announced_state& what);

  /// The highest epoch that at least half of the members have reached. None without a member.
  std::optional<std::uint64_t> reached() const;
  /// The state with the most votes among those of reached() and later epochs. The earliest one of
  /// several with as many. None without a member.
  std::optional<announced_state> leading() const;

private:
  std::map<member_id, announced_state> votes_;
};

/// The highest epoch that at least half of them have reached. Requires: there is one.
std::uint64_t reached_by_half(std::vector<std::uint64_t> epochs);
/// The latest epoch that a stage may show beside the epochs of the others. A stage is at most one
/// step ahead of them, and their records may be older by another step. Any epoch if there are no
/// others.
std::uint64_t most_epoch_beside(std::vector<std::uint64_t> others);

} // namespace shoal::actors
