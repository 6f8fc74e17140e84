// Probation: a newcomer's contributions count only after it has taken part in some rounds. So a
// member that was banned gains little by another identity, if it gets one. The rounds are those of
// the chain of certified steps, which all members in sync share, so they agree who is new.
//
// A member is established if it is in the rosters of `rounds` steps, or of half of all steps. The
// latter lets the first members begin. Only the last `window` steps count, so a member that was
// away for long begins anew.
#pragma once

#include "actors/ids.hpp"
#include "actors/trust/chain.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace shoal::actors {

class newcomers {
public:
  static constexpr std::size_t window = 4096;

  /// The newcomers after these steps. `rounds` 0: there are none.
  newcomers(const std::deque<step_ptr>& steps, std::uint64_t rounds);
  bool has(const member_id& who) const;

private:
  std::vector<step_ptr> steps_; // the last ones
  std::uint64_t rounds_;
};

} // namespace shoal::actors
