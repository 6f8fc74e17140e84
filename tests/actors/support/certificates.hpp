// Certificates of rounds that a test makes up: rosters and votes that are signed as the members of
// a real round sign them.
#pragma once

#include "actors/averaging/certificate.hpp"
#include "actors/trust/chain.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace shoal::actors::testing {

/// A member of a made-up round: its host, and an actor there.
struct signer {
  mini_host* on = nullptr;
  caf::actor address;
  std::uint64_t weight = 1;
};

/// Signs the roster and all votes again, after a test has changed a field.
inline void sign(round_certificate& what, const std::vector<signer>& members) {
  auto& roster = what.roster;
  const auto host_of = [&](const member_info& who) {
    return std::find_if(members.begin(), members.end(),
                        [&](const signer& s) { return s.on->id() == who.peer; })
        ->on;
  };
  for (auto& who : roster.members) who.by = host_of(who)->sign(member_statement(roster, who));
  roster.group = group_of(roster);
  roster.by = host_of(roster.members[roster.leader])->sign(group_statement(roster));
  for (auto& vote : what.votes)
    vote.by =
        host_of(roster.members[vote.member])->sign(vote_statement(what.round(), what.version));
}

/// The certificate of a round of these members from `before`, with all votes.
inline round_certificate certify(std::vector<signer> members, const chain_point& before,
                                 const id128& version, const id128& root = {}) {
  std::sort(members.begin(), members.end(),
            [](const signer& a, const signer& b) { return a.on->id() < b.on->id(); });
  round_certificate out;
  out.roster.epoch = before.epoch;
  out.roster.state = before.state;
  out.version = version;
  for (const auto& member : members) {
    member_info who;
    who.peer = member.on->id();
    who.address = member.address;
    who.weight = member.weight;
    who.key = member.on->key();
    who.state_root = root;
    out.votes.push_back({static_cast<std::uint32_t>(out.roster.members.size()), {}});
    out.roster.members.push_back(std::move(who));
  }
  sign(out, members);
  return out;
}

inline std::shared_ptr<const round_certificate> shared_copy(const round_certificate& of) {
  return std::make_shared<const round_certificate>(of);
}

} // namespace shoal::actors::testing
