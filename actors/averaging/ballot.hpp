// The votes of one round. Each member that takes the result votes once, for the version that it
// holds. Two majorities share a member, so at most one version ever gets a majority. A vote counts
// also after its member is lost. (docs/adr/0011)
#pragma once

#include "actors/ids.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace shoal::actors {

class ballot {
public:
  enum class verdict : std::uint8_t {
    open, ///< more votes are needed
    won,  ///< our version has the majority
    lost, ///< another version has it
  };

  /// `votes`: by member, whether it takes the result.
  ballot(std::vector<bool> votes, std::uint32_t self) : self_(self) {
    for (const bool each : votes) members_.push_back({each});
  }

  /// Our vote.
  void cast(const id128& version) { own_ = members_[self_].vote = version; }
  /// False if the member has voted for another version before.
  bool cast(std::uint32_t member, const id128& version);
  /// A member that knows the majority says which version has it.
  void announce(const id128& version) { announced_ = version; }
  /// The member is lost. One that declined never votes, so it counts for no majority, even if only
  /// some members know that it declined.
  void lose(std::uint32_t member, bool declined);

  const std::optional<id128>& own() const noexcept { return own_; }
  bool announced() const noexcept { return announced_.has_value(); }
  /// More than half of the voters.
  std::uint32_t majority() const;
  /// Votes that our version has, or may still get; before we vote, those that any version may get.
  std::uint32_t possible() const;
  /// Requires: we have voted. `needed`: votes that make a majority.
  verdict count(std::uint32_t needed) const;

private:
  struct voter {
    bool votes = false;
    bool lost = false, declined = false;
    std::optional<id128> vote{};
  };

  std::vector<voter> members_;
  std::uint32_t self_;
  std::optional<id128> own_, announced_;
};

} // namespace shoal::actors
