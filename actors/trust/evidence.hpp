// Evidence against a member: two signed statements that contradict each other. An honest member
// makes one statement of each kind about each subject, so nobody can be accused of an honest act.
// Anybody who has the evidence can check it, and needs to trust no one.
//   statement = (kind, subject, content), for example (vote, the round, the version)
//
// A decline of a round is a vote with a zero version.
#pragma once

#include "actors/ids.hpp"
#include "actors/message_list.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/result.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace shoal::actors {

/// The kinds of statements of which a member makes one for each subject.
enum class statement_kind : std::uint8_t {
  vote,       ///< subject: the round; content: the version of the result, or zero for a decline
  group,      ///< subject: the leader's attempt; content: the group's id
  part,       ///< subject: the round and the part; content: the root over the part's chunks
  commitment, ///< subject: the round; content: the hash of the member's commitment
  checks, ///< subject: the round and its random number; content: the hash of the member's checks
};
inline constexpr std::array<std::string_view, 5> statement_kind_names{"vote", "group", "part",
                                                                      "commitment", "checks"};

/// The digest that a member signs.
digest statement_about(statement_kind kind, const id128& subject, const id128& content);

struct evidence {
  std::uint8_t kind = 0; ///< statement_kind
  key256 culprit;
  id128 subject;
  id128 first, second; ///< the contents
  signature first_by, second_by;
  SHOAL_MESSAGE(evidence, x.kind, x.culprit, x.subject, x.first, x.second, x.first_by, x.second_by)
  bool operator==(const evidence&) const = default;
};

/// host::is_signed_by, or a test's stand-in.
using signature_check =
    std::function<bool(const key256& key, const digest& statement, const signature& by)>;

/// True if both statements are the culprit's, and contradict each other.
bool holds(const evidence& what, const signature_check& is_signed_by);
/// 'two votes in one round'.
std::string_view meaning(const evidence& what);

/// One line of text, and back. Errors: not such a line.
std::string to_line(const evidence& what);
result<evidence> evidence_from_line(std::string_view line);

/// The members against whom a host has a proof. A plain table; the caller checks the proofs.
class ban_list {
public:
  static constexpr std::size_t most = 4096; ///< a certificate costs more than an entry

  /// True if the member was not banned before. False also if the list is full.
  bool add(const evidence& what);
  /// The same for a member that has lost a case: actors/trust/verdict.hpp.
  bool add(const member_id& who);
  bool has(const member_id& who) const { return all_.contains(who) || judged_.contains(who); }
  const evidence* find(const member_id& who) const;
  bool empty() const noexcept { return all_.empty() && judged_.empty(); }
  const std::map<member_id, evidence>& all() const noexcept { return all_; }

private:
  std::map<member_id, evidence> all_;
  std::set<member_id> judged_;
};

using trust_messages = message_list<row<evidence, traffic::control, scope::remote>>;

} // namespace shoal::actors
