// The duties that members have missed in Byzantine-tolerant rounds, as one peer sees it. The duties
// are to reveal a secret, to send the checks, and to compute a contribution again.
// A missed duty is no proof, because a crash or a cut looks the same. So it costs no member its
// key. A member that misses two duties in `window` epochs sits out `pause` epochs: this peer takes
// it into none of its groups. An honest member seldom misses two.
//
// A plain state machine. Each peer has its own; they need not agree.
#pragma once

#include "actors/ids.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <set>

namespace shoal::actors {

class standing {
public:
  struct settings {
    std::uint64_t missed = 2; ///< duties of which the last one has the consequence
    std::uint64_t window = 20, pause = 10;
    std::size_t most_members = 4096;
  };

  explicit standing(settings how) : how_(how) {}
  standing() : standing(settings{}) {}

  /// The member has missed a duty in a round of this epoch. True if it has to sit out now. Several
  /// missed duties of one epoch count once: they have one cause.
  bool miss(const member_id& who, std::uint64_t epoch);
  /// The members that sit out in a round of this epoch.
  std::set<member_id> out(std::uint64_t epoch) const;

private:
  struct entry {
    std::deque<std::uint64_t> missed; // epochs, ascending
    std::uint64_t back = 0;           // the first epoch after its pause
  };

  settings how_;
  std::map<member_id, entry> members_;
};

} // namespace shoal::actors
