// A random number that the members of a round make together. Each member commits to a secret before
// the round's values are sent, and reveals it after the result is certified. So no member knows the
// number while it can still choose its values (MPRNG of Gorbunov et al., arXiv:2106.11257).
//
// A member that commits and does not reveal is left out of the number. So f members can choose
// among 2^f numbers, at the price of f failed duties. The bias is bounded, not zero.
#pragma once

#include "actors/ids.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace shoal::actors {

/// Hides a secret until it is revealed. The group and the member are in it, so that no member can
/// repeat another's commitment as its own.
id128 hidden(const group_id& group, std::uint32_t member, const key256& secret);

class beacon {
public:
  beacon(group_id group, std::uint32_t members)
      : group_(group), secrets_(members), hidden_(members) {}

  /// The member's commitment. The first one counts.
  void commit(std::uint32_t member, const id128& hidden_secret);
  bool has_committed(std::uint32_t member) const { return hidden_[member].has_value(); }
  /// False if the secret is not the one that the member committed to.
  bool reveal(std::uint32_t member, const key256& secret);
  bool has_revealed(std::uint32_t member) const { return secrets_[member].has_value(); }
  /// The members that have committed and not revealed, ascending.
  std::vector<std::uint32_t> missing() const;
  /// The number from all revealed secrets, in member order. Equal sets give equal numbers.
  digest value() const;

private:
  group_id group_;
  std::vector<std::optional<key256>> secrets_;
  std::vector<std::optional<id128>> hidden_;
};

} // namespace shoal::actors
