// A verdict: more than half of a round's members say that a member of the round has broken the
// rules. It bans the member, as evidence does.
//
// Members sign a verdict if they have computed the disputed values themselves, or if more than half
// of the case's jurors have (docs/adr/0034-members-judge-each-other.md).
//
// A verdict has keys and no roster, so that it can be kept on disk. Signatures alone are not
// enough: members that work together could make a group of their own, and judge somebody in it. So
// a host believes a verdict only about a group that it knows. It knows the groups of its own
// rounds, and those on the chain of its branch (host::remember_group).
#pragma once

#include "actors/ids.hpp"
#include "actors/message_list.hpp"
#include "actors/trust/evidence.hpp"
#include "kernels/base/result.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

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

/// The statement that the member with this key has lost the case. The group has `members` members.
digest verdict_statement(const group_id& group, const id128& case_id, std::uint8_t kind,
                         std::uint32_t members, const key256& culprit);

/// A member that has signed a verdict.
struct judge {
  key256 key;
  signature by; ///< over verdict_statement()
  SHOAL_MESSAGE(judge, x.key, x.by)
  bool operator==(const judge&) const = default;
};

struct verdict {
  group_id group;
  id128 case_id;
  std::uint8_t kind = 0;                            ///< case_kind
  std::uint32_t accuser = 0, accused = 0, part = 0; ///< indices in the group
  std::uint32_t members = 0;                        ///< number in the group
  key256 culprit;                                   ///< the accuser or the accused
  std::vector<judge> by;                            ///< ascending keys
  SHOAL_MESSAGE(verdict, x.group, x.case_id, x.kind, x.accuser, x.accused, x.part, x.members,
                x.culprit, x.by)
  bool operator==(const verdict&) const = default;
};

/// More than half of the members without the culprit.
constexpr std::uint32_t signatures_needed(std::uint32_t members) noexcept {
  return (members - 1) / 2 + 1;
}

/// In a group of two, one member's word would ban the other.
inline constexpr std::uint32_t fewest_members = 3;

/// The first thing that is wrong with a verdict, or nothing. Checks the case and the signatures.
result<void> check(const verdict& what, const signature_check& is_signed_by);
/// The same. `members` are the keys of the group's members, in the order of the roster.
result<void> check(const verdict& what, std::span<const key256> members,
                   const signature_check& is_signed_by);

// The functions of a proof: actors/trust/proof.hpp.
bool holds(const verdict& what, const signature_check& is_signed_by);
/// 'lost case 1f... about a gradient'.
std::string meaning(const verdict& what);
std::vector<std::string> said(const verdict& what);
/// One line of text, and back. Errors: no such line.
std::string to_line(const verdict& what);
result<verdict> verdict_from_line(std::string_view line);

using verdict_messages = message_list<row<judge, traffic::control, scope::remote>,
                                      row<verdict, traffic::control, scope::remote>>;

} // namespace shoal::actors
