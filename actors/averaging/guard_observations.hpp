// Observations of a Byzantine-tolerant round (guard.hpp). Members are indices in the group.
#pragma once

#include "actors/ids.hpp"
#include "actors/observe.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

/// This member has committed to its contribution.
struct committed {
  static constexpr std::string_view observed_as = "committed";
  group_id group;
  std::uint64_t epoch = 0;
  std::uint32_t member = 0;
};

/// This member, the validator, has to compute the target's contribution again.
struct audit_planned {
  static constexpr std::string_view observed_as = "audit_planned";
  group_id group;
  std::uint32_t validator = 0, target = 0;
  peer_id target_peer = 0;
  std::string logged_fields() const;
};

/// The validator has done so.
struct audited {
  static constexpr std::string_view observed_as = "audited";
  group_id group;
  std::uint32_t validator = 0, target = 0;
  peer_id target_peer = 0;
  bool right = false;
  std::string logged_fields() const;
};

/// This member, the accuser, has accused another.
struct accused_member {
  static constexpr std::string_view observed_as = "accused";
  group_id group;
  id128 case_id;
  std::uint8_t kind = 0; ///< case_kind in actors/trust/verdict.hpp
  std::uint32_t accuser = 0, accused = 0, part = 0;
  peer_id accuser_peer = 0, accused_peer = 0;
  std::string logged_fields() const;
};

/// This member holds the verdict of a case.
struct case_decided {
  static constexpr std::string_view observed_as = "case_decided";
  group_id group;
  id128 case_id;
  std::uint8_t kind = 0;
  std::uint32_t accuser = 0, accused = 0, culprit = 0;
  peer_id culprit_peer = 0;
  std::uint32_t signatures = 0;
  std::string logged_fields() const;
};

/// This member has a proof that a member of the round contradicts itself.
struct contradiction_found {
  static constexpr std::string_view observed_as = "contradiction_found";
  group_id group;
  std::uint32_t culprit = 0;
  peer_id culprit_peer = 0;
  std::string_view what;
  std::string logged_fields() const;
};

/// A member of the round has not done what it owes, as this member sees it. That is no proof.
struct duty_failed {
  static constexpr std::string_view observed_as = "duty_failed";
  group_id group;
  std::uint32_t member = 0;
  peer_id peer = 0;
  std::string_view what;
  std::string logged_fields() const;
};

/// The distances of the members' contributions from the result, as they report them. Negative: the
/// member has not reported.
struct distances {
  static constexpr std::string_view observed_as = "distances";
  group_id group;
  std::uint32_t member = 0; ///< that observes
  std::vector<double> norms;
  std::vector<peer_id> peers; ///< the members' peers
};

} // namespace shoal::actors
