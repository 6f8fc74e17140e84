// The messages by which a peer proves to the data shard that a round took place. Without proof, a
// member could name a round that never was, and so end the leases of others.
#pragma once

#include "actors/averaging/certified_round.hpp"
#include "actors/data/messages.hpp"

#include <vector>

namespace shoal::actors {

/// A commit with the certificate of its round. Two members of each round send it; the others send
/// a plain commit, which waits for the proof.
struct proven_commit {
  commit what;
  certified_round by;
  SHOAL_MESSAGE(proven_commit, x.what, x.by)
};

/// The shard has a commit of this round from the receiver, and no proof. `with_admissions`: the
/// shard does not know the keys of enough voters.
struct proof_wanted {
  group_id group;
  std::uint8_t with_admissions = 0;
  SHOAL_MESSAGE(proof_wanted, x.group, x.with_admissions)
};

/// The answer. `lacks`: the sender has no proof. With `complete`, `admitted` has the certificates
/// of voters, as far as the sender has them.
struct commit_proof {
  group_id group;
  std::uint8_t lacks = 0;
  std::uint8_t complete = 0;
  certified_round by;
  std::vector<member_certificate> admitted;
  SHOAL_MESSAGE(commit_proof, x.group, x.lacks, x.complete, x.by, x.admitted)
};

using proof_messages = message_list<row<proven_commit, traffic::control, scope::remote>,
                                    row<proof_wanted, traffic::control, scope::remote>,
                                    row<commit_proof, traffic::control, scope::remote>>;

} // namespace shoal::actors
