// The statements that the members of a round sign, and the certificate that ends the round.
//
// The roster (group_begun) has each member's own signature under its address, weight, rates and
// samples, and the leader's under the whole. The group id is the roster's hash. So whoever has the
// id and the roster knows what every member agreed to, and that no field was changed.
//
// A vote is a signature under (group id, version). The version covers the senders and the values of
// every chunk (version_of). More than two thirds of the members that take the result make a
// certificate; members that declined in writing do not count. Two sets of more than two thirds
// share more than a third. So two versions of one group never both have certificates while fewer
// than a third are hostile: an honest member would have voted twice. (docs/adr/0030)
//
// Statements begin with their kind and end in the world's signature, which binds the swarm.
#pragma once

#include "actors/averaging/messages.hpp"
#include "actors/averaging/part_outcome.hpp"
#include "actors/trust/evidence.hpp"
#include "kernels/base/payload.hpp"
#include "kernels/base/result.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace shoal::actors {

class host;

/// The proof that a round ended with one result.
struct round_certificate {
  group_begun roster;  ///< as the leader sent it; boundaries may be empty
  bool second = false; ///< the second of two rounds has ended (actors/averaging/group.hpp)
  id128 version;
  std::vector<member_signature> votes;    ///< ascending members
  std::vector<member_signature> declines; ///< ascending members that did not vote

  /// The id that the round's messages have.
  group_id round() const;
};

// -- statements

/// The member takes part in a round with these fields of the roster: epoch, state, value_count and
/// codec.
digest member_statement(const group_begun& of, const member_info& who);
/// The leader has closed this group.
digest group_statement(const group_begun& roster);
/// The subject of that statement: a leader makes one group in an attempt.
id128 attempt_of(const group_begun& roster);
digest vote_statement(const group_id& round, const id128& version);
/// The signer takes no part in the round, and never votes in it.
digest decline_statement(const group_id& round);

// -- ids

/// The id of the group with this roster.
group_id group_of(const group_begun& roster);
/// The id of the second round of a group.
group_id second_group(const group_id& first);

/// The hash of one finished chunk: its senders, and tree_hash_of() its values or the size of
/// size-only ones.
id128 chunk_version(const std::vector<std::uint32_t>& senders, const payload& values);
/// The version of a result: `chunks` are all chunks in order. `before` is the version of the first
/// of two rounds, else zero.
id128 version_of(std::span<const id128> chunks, const id128& before = {});
/// The same from a round's result. Requires: `boundaries` are those of the round, and `parts` cover
/// `values`.
id128 version_of(const std::vector<std::uint64_t>& boundaries, std::uint64_t chunk_bytes,
                 const std::vector<part_outcome>& parts, const payload& values,
                 const id128& before = {});

// -- checks

/// Votes that make a certificate, of `voters` members that neither declined nor only reduce.
constexpr std::uint32_t votes_needed(std::uint32_t voters) noexcept {
  return 2 * voters / 3 + 1;
}

/// The first thing that is wrong with a roster, or nothing. Its members are in ascending order of
/// peers, and no key is there twice. Each member and the leader have signed, and the id is right.
/// The addresses' hosts are not checked.
result<void> check_roster(const group_begun& roster, const signature_check& is_signed_by);
/// Checks roster and votes.
result<void> check(const round_certificate& certificate, const signature_check& is_signed_by);
/// Checks also that each member's address belongs to its key, and that the swarm admits the keys of
/// enough voters. A host must know their keys already: host::admits().
result<void> check(const round_certificate& certificate, host& by);

/// Two statements of one member that contradict each other. Anybody can check them.
struct contradiction {
  enum class kind : std::uint8_t { two_groups, two_votes, vote_and_decline };
  kind what = kind::two_votes;
  key256 culprit;
  group_id round;      ///< the round of the votes
  id128 first, second; ///< versions; `second` is zero for a decline
  signature first_by, second_by;
  group_begun first_roster{}, second_roster{}; ///< if there are two groups

  bool holds(const signature_check& is_signed_by) const;
};

/// The same without the rosters. Requires: `proof` holds.
evidence evidence_of(const contradiction& proof);

} // namespace shoal::actors
