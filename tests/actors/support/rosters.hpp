// Rosters as honest members sign them, for tests that play a leader.
#pragma once

#include "actors/averaging/certificate.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <utility>
#include <vector>

namespace shoal::actors::testing {

/// The member's entry with its key and its signature.
inline void sign_entry(const group_begun& of, member_info& who, const mini_host& by) {
  who.key = by.key();
  who.by = by.sign(member_statement(of, who));
}

/// Gives the roster its id and the leader's signature.
inline void close_roster(group_begun& roster, const mini_host& leader) {
  roster.group = group_of(roster);
  roster.by = leader.sign(group_statement(roster));
}

/// The roster with all signatures. Entries that have one already keep it. Requires: `by` are the
/// members' hosts.
inline group_begun sealed(group_begun roster, const std::vector<const mini_host*>& by,
                          std::uint32_t leader = 0) {
  roster.leader = leader;
  for (std::size_t m = 0; m < by.size(); ++m)
    if (roster.members[m].by == signature{}) sign_entry(roster, roster.members[m], *by[m]);
  close_roster(roster, *by[leader]);
  return roster;
}

} // namespace shoal::actors::testing
