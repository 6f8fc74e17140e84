// The votes of one round. Each member that takes the result votes once, for the version that it
// holds, and signs its vote. A version wins with more than two thirds of the votes. Two such sets
// share more than a third of the members. So two versions never both win while fewer than a third
// are hostile. A vote counts also after its member is lost. (docs/adr/0030)
#pragma once

#include "actors/averaging/certificate.hpp"
#include "actors/ids.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace shoal::actors {

class ballot {
public:
  enum class verdict : std::uint8_t {
    open, ///< more votes are needed
    won,  ///< our version has them
    lost, ///< another version has them
  };

  /// `votes`: by member, whether it takes the result.
  ballot(std::vector<bool> votes, std::uint32_t self) : self_(self) {
    for (const bool each : votes) members_.push_back({each});
  }

  /// Our vote.
  void cast(const id128& version, const signature& by);
  /// False if the member has voted for another version before, or has declined: then contradicts()
  /// has the proof. Requires: the signature is the member's.
  bool cast(std::uint32_t member, const id128& version, const signature& by);
  /// The member declined, so it counts for no majority, even if only some members know of it. False
  /// if it has voted. Requires: the signature is the member's.
  bool decline(std::uint32_t member, const signature& by);
  /// Another member's certificate: its votes count together, whatever else their members signed.
  /// Requires: they are enough, and each signature is its member's.
  void certify(const id128& version, std::vector<member_signature> votes,
               std::vector<member_signature> declines);
  /// The member is lost: it sends no vote any more.
  void lose(std::uint32_t member) { members_[member].lost = true; }

  const std::optional<id128>& own() const noexcept { return own_; }
  bool has_voted(std::uint32_t member) const { return members_[member].vote.has_value(); }
  /// The votes that a version needs.
  std::uint32_t needed() const;
  /// Votes that our version has, or may still get; before we vote, those that any version may get.
  std::uint32_t possible() const;
  /// The version that has so many votes; ours, if there are two.
  std::optional<id128> winner(std::uint32_t needed) const;
  /// Requires: we have voted.
  verdict count(std::uint32_t needed) const;

  /// The signed votes for this version, and the signed declines that go with them.
  std::vector<member_signature> votes_for(const id128& version) const;
  std::vector<member_signature> declines_for(const id128& version) const;
  /// The member's vote and the other statement, which cast() or decline() did not take.
  contradiction contradicts(std::uint32_t member, const id128& version, const signature& by) const;
  contradiction contradicts(std::uint32_t member, const signature& decline) const;

private:
  struct voter {
    bool votes = false;
    bool lost = false;
    std::optional<id128> vote{};
    std::optional<signature> declined{};
    signature by{};
  };

  std::uint32_t count_of(const id128& version) const;

  std::vector<voter> members_;
  std::uint32_t self_;
  std::optional<id128> own_;
  std::optional<id128> certified_;
  std::vector<member_signature> certified_votes_, certified_declines_;
};

} // namespace shoal::actors
