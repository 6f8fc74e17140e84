// Messages of a Byzantine-tolerant round (actors/averaging/guard.hpp), beside those of the
// all-reduce. All go to every member of the group, or to one where the comment says so.
#pragma once

#include "actors/averaging/messages.hpp"

#include <cstdint>
#include <vector>

namespace shoal::actors {

/// A member's commitment, before any values are sent: to its contribution, to the samples of it,
/// and to its secret.
struct round_commitment {
  group_id group;
  std::uint32_t member = 0;
  /// By part, the hash of the hashes of its chunks as the codec writes them; empty if the member
  /// gives nothing.
  std::vector<id128> parts;
  /// The blocks of samples in the order in which the gradients were added.
  std::vector<sample_range> blocks;
  id128 secret; ///< hidden() of the member's secret
  signature by; ///< over commitment_statement()
  SHOAL_MESSAGE(round_commitment, x.group, x.member, x.parts, x.blocks, x.secret, x.by)
};

/// The sender has these commitments, as one hash. Different hashes lead to commitments_given.
struct commitments_seen {
  group_id group;
  std::uint32_t member = 0;
  id128 all;
  SHOAL_MESSAGE(commitments_seen, x.group, x.member, x.all)
};

/// The commitments that the sender has, to a member that saw others.
struct commitments_given {
  group_id group;
  std::uint32_t member = 0;
  std::vector<round_commitment> all;
  SHOAL_MESSAGE(commitments_given, x.group, x.member, x.all)
};

/// To the reducer of a part, before the chunks: the hashes behind the part's commitment.
struct chunk_hashes {
  group_id group;
  std::uint32_t member = 0;
  std::uint32_t part = 0;
  std::vector<id128> chunks;
  SHOAL_MESSAGE(chunk_hashes, x.group, x.member, x.part, x.chunks)
};

/// A reducer's result of a part: the hash of its chunks' versions.
struct part_sealed {
  group_id group;
  std::uint32_t member = 0;
  std::uint32_t part = 0;
  id128 root;
  signature by; ///< statement_kind::part
  SHOAL_MESSAGE(part_sealed, x.group, x.member, x.part, x.root, x.by)
};

struct secret_revealed {
  group_id group;
  std::uint32_t member = 0;
  key256 secret;
  SHOAL_MESSAGE(secret_revealed, x.group, x.member, x.secret)
};

/// By part: the scalar product of the member's clipped difference from the result with the part's
/// random direction, and the norm of the difference. Both are the bits of doubles.
struct part_checks {
  group_id group;
  std::uint32_t member = 0;
  id128 random; ///< hash of the random number that the member has
  std::vector<std::uint64_t> products, norms;
  signature by; ///< over checks_statement()
  SHOAL_MESSAGE(part_checks, x.group, x.member, x.random, x.products, x.norms, x.by)
};

/// A validator has computed its target's contribution again, and it is right.
struct audit_passed {
  group_id group;
  std::uint32_t member = 0;
  std::uint32_t target = 0;
  SHOAL_MESSAGE(audit_passed, x.group, x.member, x.target)
};

struct accusation {
  group_id group;
  std::uint32_t member = 0; ///< the accuser
  std::uint32_t accused = 0;
  std::uint8_t kind = 0; ///< case_kind in actors/trust/verdict.hpp
  std::uint32_t part = 0;
  signature by; ///< over accusation_statement()
  SHOAL_MESSAGE(accusation, x.group, x.member, x.accused, x.kind, x.part, x.by)
};

/// To one member: asks for its values of a part, which a case is about.
struct opening_wanted {
  group_id group;
  std::uint32_t member = 0;
  id128 case_id;
  std::uint32_t of = 0; ///< the member whose values they are
  std::uint32_t part = 0;
  SHOAL_MESSAGE(opening_wanted, x.group, x.member, x.case_id, x.of, x.part)
};

/// To one member: a chunk of the values that it asked for.
struct opening {
  group_id group;
  std::uint32_t member = 0;
  std::uint32_t of = 0;
  std::uint32_t part = 0;
  std::uint32_t chunk = 0;
  payload data;
  SHOAL_MESSAGE(opening, x.group, x.member, x.of, x.part, x.chunk, x.data)
};

/// A juror's decision.
struct juror_vote {
  group_id group;
  std::uint32_t member = 0;
  id128 case_id;
  std::uint32_t culprit = 0; ///< accuser or accused
  signature by;              ///< over verdict_statement()
  SHOAL_MESSAGE(juror_vote, x.group, x.member, x.case_id, x.culprit, x.by)
};

using guard_messages = message_list<row<round_commitment, traffic::control, scope::remote>,
                                    row<commitments_seen, traffic::control, scope::remote>,
                                    row<commitments_given, traffic::control, scope::remote>,
                                    row<chunk_hashes, traffic::control, scope::remote>,
                                    row<part_sealed, traffic::control, scope::remote>,
                                    row<secret_revealed, traffic::control, scope::remote>,
                                    row<part_checks, traffic::control, scope::remote>,
                                    row<audit_passed, traffic::control, scope::remote>,
                                    row<accusation, traffic::control, scope::remote>,
                                    row<opening_wanted, traffic::control, scope::remote>,
                                    row<opening, traffic::averaging, scope::remote>,
                                    row<juror_vote, traffic::control, scope::remote>>;

} // namespace shoal::actors
