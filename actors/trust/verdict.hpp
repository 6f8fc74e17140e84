// A verdict: more than half of a round's members say that a member of the round has broken the
// rules. Anybody who has the roster can check it. It bans the member, as evidence does.
//
// Members sign a verdict if they have computed the disputed values themselves, or if more than half
// of the case's jurors have (docs/adr/0034-members-judge-each-other.md).
#pragma once

#include "actors/averaging/messages.hpp"
#include "actors/trust/evidence.hpp"
#include "kernels/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

class host;

/// The rule that a case is about. `accused` is the member that the accuser blames; the jury blames
/// one of the two.
enum class case_kind : std::uint8_t {
  gradient,  ///< an audit: the contribution is not the gradient of its samples
  product,   ///< V1: the member's scalar product for a part is not that of its values
  aggregate, ///< V2: a part's result is not the robust mean of its contributions
  distance,  ///< V3: a part's result is far from most contributions
  poisoned,  ///< samples of a shard that are not the corpus
};
std::string_view name_of(case_kind kind);

/// hash(group, kind, accuser, accused, part).
id128 case_of(const group_id& group, case_kind kind, std::uint32_t accuser, std::uint32_t accused,
              std::uint32_t part);

/// The statement that the member of this index in the group has lost the case.
digest verdict_statement(const group_id& group, const id128& case_id, std::uint8_t kind,
                         std::uint32_t culprit);

struct verdict {
  group_begun roster; ///< signed by its members and by the leader
  id128 case_id;
  std::uint8_t kind = 0; ///< case_kind
  std::uint32_t accuser = 0, accused = 0, part = 0;
  std::uint32_t culprit = 0;
  std::vector<member_signature> by; ///< ascending members
  SHOAL_MESSAGE(verdict, x.roster, x.case_id, x.kind, x.accuser, x.accused, x.part, x.culprit, x.by)

  const key256& culprit_key() const { return roster.members[culprit].key; }
};

/// More than half of the members without the culprit.
constexpr std::uint32_t signatures_needed(std::uint32_t members) noexcept {
  return (members - 1) / 2 + 1;
}

/// In a group of two, one member's word would ban the other.
inline constexpr std::uint32_t fewest_members = 3;

/// The first thing that is wrong with a verdict, or nothing. Checks the roster and signatures.
result<void> check(const verdict& what, const signature_check& is_signed_by);
/// Checks also that the swarm admits the keys of enough judges, and that each member's address
/// belongs to its key.
result<void> check(const verdict& what, host& by);
/// 'lost case 1f... about a gradient'.
std::string meaning(const verdict& what);

using verdict_messages = message_list<row<verdict, traffic::control, scope::remote>>;

} // namespace shoal::actors
