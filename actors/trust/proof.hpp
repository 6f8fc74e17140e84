// A proof of a member's guilt. Each host checks it alone, bans the member, and passes the proof on.
// Each kind of proof is a struct with its own check.
//
// To add a kind: give the struct `culprit`, holds(), meaning(), said() and to_line(). Add the
// struct to the list of `proof` in actors/host.hpp, and its reader to proof.cpp.
#pragma once

#include "actors/host.hpp"
#include "actors/ids.hpp"
#include "actors/observe.hpp"
#include "actors/trust/evidence.hpp"
#include "actors/trust/verdict.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shoal::actors {

const key256& culprit_of(const proof& what);
/// True if the culprit did what the proof says.
bool holds(const proof& what, const signature_check& is_signed_by);
/// The deed in a few words: 'two votes in one round'.
std::string meaning_of(const proof& what);
/// One sentence for each signed statement in the proof.
std::vector<std::string> said(const evidence& what);
std::vector<std::string> statements_in(const proof& what);

/// One line of text, and back. The first word is the kind of the proof. Errors: no such line.
std::string to_line(const proof& what);
result<proof> proof_from_line(std::string_view line);

/// A proof, and the swarm in which its signatures count: in_swarm(). In text: 'PROOF swarm HASH'.
struct proof_in_swarm {
  proof what;
  std::string swarm;
  bool operator==(const proof_in_swarm&) const = default;
};
std::string to_line(const proof_in_swarm& what);
/// Errors: no such line.
result<proof_in_swarm> proof_in_swarm_from(std::string_view line);
/// True if the proof holds in its swarm. False in a simulation, whose signatures anybody can make.
bool holds(const proof_in_swarm& what);

/// The digest that a member signs: a statement, bound to the swarm in which it counts. `swarm` is
/// the hash of the swarm's scenario in hexadecimal digits, and empty in a simulation.
digest in_swarm(std::string_view swarm, const digest& statement);

/// Whether signatures of members of that swarm are genuine.
signature_check signed_in_swarm(std::string swarm);

/// A host has taken a proof. The observation member_banned goes with it.
struct proof_taken {
  static constexpr std::string_view observed_as = "proof_taken";
  peer_id culprit = 0; ///< an incarnation of the member; 0: none is known
  member_id member;
  std::string name; ///< the member's name; empty if this host does not know it
  proof_in_swarm what;
  std::string logged_fields() const;
};

} // namespace shoal::actors
