// The proof of a chain's step: the certificate of the round that took it.
#include "actors/averaging/certificate.hpp"
#include "actors/host.hpp"
#include "actors/trust/chain.hpp"
#include "actors/trust/identity.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace shoal::actors {

namespace {

/// The root that more than two thirds of the voters signed in the roster; zero if there is none.
id128 agreed_root(const round_certificate& of) {
  const auto& members = of.roster.members;
  const auto voters = static_cast<std::uint32_t>(
      std::count_if(members.begin(), members.end(), [](const auto& m) { return m.takes != 0; }));
  const auto needed = votes_needed(voters - static_cast<std::uint32_t>(of.declines.size()));
  std::map<id128, std::uint32_t> named;
  for (const auto& vote : of.votes) ++named[members[vote.member].state_root];
  for (const auto& [root, count] : named)
    if (count >= needed) return root;
  return {};
}

} // namespace

step_ptr step_of(std::shared_ptr<const round_certificate> certificate) {
  const auto& roster = certificate->roster;
  certified_step out;
  out.before = {roster.epoch, roster.state};
  out.after = {roster.epoch + 1,
               state_after(roster.state, certificate->round(), certificate->version)};
  out.root = agreed_root(*certificate);
  // Different copies of a certificate may have different votes, but the same roster.
  std::set<std::uint32_t> declined;
  for (const auto& one : certificate->declines) declined.insert(one.member);
  for (std::uint32_t m = 0; m < roster.members.size(); ++m)
    if (roster.members[m].takes != 0 && !declined.contains(m))
      out.supporters.push_back(member_of(roster.members[m].key));
  std::sort(out.supporters.begin(), out.supporters.end());
  out.certificate = std::move(certificate);
  return std::make_shared<const certified_step>(std::move(out));
}

result<step_ptr> prove(std::shared_ptr<const round_certificate> certificate, host& here) {
  // The first of two rounds has a certificate, too, but nobody steps by it.
  if (certificate->second != (certificate->roster.second_values > 0))
    return failure{"the certificate is not of the round that the step was taken from"};
  if (auto fine = check(*certificate, here); !fine) return failure{fine.error()};
  return step_of(std::move(certificate));
}

} // namespace shoal::actors
