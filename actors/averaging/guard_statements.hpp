// The hashes and the signed statements of a Byzantine-tolerant round (guard.hpp).
//   chunk       H(bytes of the chunk as the codec writes it)
//   part        H(hashes of its chunks)
//   commitment  H(group, member, parts, blocks, hidden secret)
// Each function is deterministic, so that any member computes the same hash.
#pragma once

#include "actors/averaging/guard_messages.hpp"
#include "actors/ids.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/payload.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shoal::actors {

/// The hash of a chunk's bytes. A size-only chunk has a fixed hash for its size, and another one if
/// `falsified`: so a run without values can have false ones.
id128 hash_of_chunk(const payload& wire, bool falsified = false);
/// The commitment to a part.
id128 hash_of_chunks(std::span<const id128> chunks);

/// The content of the commitment's statement: all fields but the signature.
id128 content_of(const round_commitment& what);
digest commitment_statement(const round_commitment& what);
/// One hash of the contents of all commitments that a member has. An absent one counts as absent.
id128 hash_of_commitments(std::span<const std::optional<id128>> contents);

id128 content_of(const part_checks& what);
/// The subject of a member's checks: it makes one list for each random number of a round.
id128 checks_subject(const group_id& group, const id128& random);
digest checks_statement(const part_checks& what);

/// The root of a finished part: `chunks` are its chunks' versions (certificate.hpp).
id128 root_of_part(std::span<const id128> chunks);
/// The subject of a reducer's result: the round and the part.
id128 part_subject(const group_id& group, std::uint32_t part);
digest part_statement(const part_sealed& what);

digest accusation_statement(const accusation& what);

} // namespace shoal::actors
