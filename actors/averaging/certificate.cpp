#include "actors/averaging/certificate.hpp"

#include "actors/averaging/part_layout.hpp"
#include "actors/host.hpp"
#include "actors/node_data.hpp"
#include "actors/trust/identity.hpp"
#include "kernels/base/tree_digest.hpp"

#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

namespace shoal::actors {

namespace {

void add(hasher& to, const id128& x) {
  to.add(x.high).add(x.low);
}
void add(hasher& to, const key256& x) {
  to.add(x.a).add(x.b).add(x.c).add(x.d);
}
void add(hasher& to, const signature& x) {
  add(to, x.r);
  add(to, x.s);
}
void add(hasher& to, const caf::actor& address) {
  const auto control = caf::actor_cast<caf::strong_actor_ptr>(address);
  if (!control) {
    to.add(std::uint8_t{0});
    return;
  }
  const auto node = control->node();
  const auto* data = data_of(node);
  if (data != nullptr)
    to.add(std::uint8_t{1}).add(data->process_id()).add(std::as_bytes(std::span(data->host_id())));
  else
    to.add(std::uint8_t{2}).add(std::string_view{caf::to_string(node)});
  to.add(control->id());
}
void add(hasher& to, const member_info& x) {
  to.add(x.peer);
  add(to, x.address);
  to.add(x.weight).add(x.rate_up).add(x.rate_down).add(x.reached).add(x.takes);
  to.add(x.samples.size());
  for (const auto& range : x.samples) to.add(range.first).add(range.count);
  add(to, x.key);
  add(to, x.state_root);
}

failure wrong(std::string_view what) {
  return {fmt::format("the round's certificate or roster is wrong: {}", what)};
}

} // namespace

group_id round_certificate::round() const {
  return second ? second_group(roster.group) : roster.group;
}

digest member_statement(const group_begun& of, const member_info& who) {
  auto out = statement("shoal.member");
  out.add(of.epoch);
  add(out, of.state);
  out.add(of.value_count).add(of.codec);
  add(out, who);
  return out.finish();
}

id128 attempt_of(const group_begun& roster) {
  auto out = statement("shoal.attempt");
  out.add(roster.epoch);
  add(out, roster.state);
  out.add(roster.attempt);
  return id128::from(out.finish());
}

digest group_statement(const group_begun& roster) {
  return statement_about(statement_kind::group, attempt_of(roster), roster.group);
}

digest vote_statement(const group_id& round, const id128& version) {
  return statement_about(statement_kind::vote, round, version);
}

digest decline_statement(const group_id& round) {
  return statement_about(statement_kind::vote, round, {});
}

group_id group_of(const group_begun& roster) {
  auto out = statement("shoal.roster");
  out.add(roster.epoch);
  add(out, roster.state);
  out.add(roster.members.size());
  for (const auto& who : roster.members) {
    add(out, who);
    add(out, who.by);
  }
  out.add(roster.chunk_bytes).add(roster.codec).add(roster.split);
  out.add(roster.value_count).add(roster.second_values);
  out.add(roster.attempt).add(roster.leader).add(roster.rate_factors.size());
  for (const auto factor : roster.rate_factors) out.add(factor);
  return group_id::from(out.finish());
}

group_id second_group(const group_id& first) {
  auto out = statement("shoal.second_round");
  add(out, first);
  return group_id::from(out.finish());
}

id128 chunk_version(const std::vector<std::uint32_t>& senders, const payload& values) {
  hasher out;
  out.add(senders.size());
  out.add(std::as_bytes(std::span(senders)));
  out.add(values.is_size_only()).add(values.size());
  if (!values.is_size_only()) out.add(tree_hash_of(values.bytes()));
  return id128::from(out.finish());
}

id128 version_of(std::span<const id128> chunks, const id128& before) {
  auto out = statement("shoal.version");
  add(out, before);
  out.add(chunks.size());
  for (const auto& chunk : chunks) add(out, chunk);
  return id128::from(out.finish());
}

id128 version_of(const std::vector<std::uint64_t>& boundaries, std::uint64_t chunk_bytes,
                 const std::vector<part_outcome>& parts, const payload& values,
                 const id128& before) {
  const part_layout layout(boundaries, chunk_bytes, values.is_size_only());
  std::vector<id128> chunks;
  for (const auto& part : parts) {
    const auto grid = layout.grid(part.part);
    for (auto at = part.begin; at < part.end;) {
      const auto size =
          grid.size(static_cast<std::uint32_t>(4 * (at - boundaries[part.part]) / grid.piece));
      chunks.push_back(chunk_version(part.senders, values.slice(4 * at, size)));
      at += size / 4;
    }
  }
  return version_of(chunks, before);
}

result<void> check_roster(const group_begun& roster, const signature_check& is_signed_by) {
  const auto& members = roster.members;
  if (members.empty() || roster.leader >= members.size()) return wrong("it has no leader");
  if (!roster.rate_factors.empty() && roster.rate_factors.size() != members.size())
    return wrong("its rate factors are not one for each member");
  std::set<key256> keys;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto& who = members[i];
    if (i > 0 && members[i - 1].peer >= who.peer) return wrong("its members are not in order");
    if (!keys.insert(who.key).second) return wrong("one key has two members");
    if (!is_signed_by(who.key, member_statement(roster, who), who.by))
      return wrong(fmt::format("member {} did not sign its entry", i));
  }
  if (roster.group != group_of(roster)) return wrong("the group id is not the roster's");
  if (!is_signed_by(members[roster.leader].key, group_statement(roster), roster.by))
    return wrong("the leader did not sign it");
  return {};
}

result<void> check(const round_certificate& certificate, const signature_check& is_signed_by) {
  const auto& roster = certificate.roster;
  if (auto fine = check_roster(roster, is_signed_by); !fine) return fine;
  const auto& members = roster.members;
  if (certificate.second && roster.second_values == 0) return wrong("there is no second round");
  std::uint32_t voters = 0;
  for (const auto& who : members) voters += who.takes != 0 ? 1 : 0;
  const auto round = certificate.round();
  std::vector<bool> spoke(members.size());
  const auto ascending = [](const std::vector<member_signature>& all) {
    return std::adjacent_find(all.begin(), all.end(), [](const auto& a, const auto& b) {
             return a.member >= b.member;
           }) == all.end();
  };
  if (!ascending(certificate.votes) || !ascending(certificate.declines))
    return wrong("a member counts twice");
  for (const auto& vote : certificate.votes) {
    if (vote.member >= members.size() || members[vote.member].takes == 0)
      return wrong("a vote by nobody that has one");
    if (!is_signed_by(members[vote.member].key, vote_statement(round, certificate.version),
                      vote.by))
      return wrong(fmt::format("member {} did not sign its vote", vote.member));
    spoke[vote.member] = true;
  }
  for (const auto& decline : certificate.declines) {
    if (decline.member >= members.size() || members[decline.member].takes == 0)
      return wrong("a decline by nobody that has a vote");
    if (spoke[decline.member]) return wrong("a member voted and declined");
    // A decline of the group is one of both rounds.
    const auto& key = members[decline.member].key;
    if (!is_signed_by(key, decline_statement(round), decline.by) &&
        !(certificate.second && is_signed_by(key, decline_statement(roster.group), decline.by)))
      return wrong(fmt::format("member {} did not sign its decline", decline.member));
    --voters;
  }
  if (certificate.votes.size() < votes_needed(voters)) return wrong("it has too few votes");
  return {};
}

result<void> check(const round_certificate& certificate, host& by) {
  const auto signed_by = [&](const key256& key, const digest& what, const signature& with) {
    return by.is_signed_by(key, what, with);
  };
  if (auto fine = check(certificate, signed_by); !fine) return fine;
  const auto& members = certificate.roster.members;
  for (const auto& who : members)
    if (member_of(who.key) != by.member_of(caf::actor_cast<caf::strong_actor_ptr>(who.address)))
      return wrong("an address belongs to another key");
  auto voters = static_cast<std::uint32_t>(std::count_if(
      members.begin(), members.end(), [](const auto& who) { return who.takes != 0; }));
  voters -= static_cast<std::uint32_t>(certificate.declines.size());
  const auto admitted =
      std::count_if(certificate.votes.begin(), certificate.votes.end(),
                    [&](const auto& vote) { return by.admits(members[vote.member].key, {}); });
  if (admitted < votes_needed(voters)) return wrong("too few voters are known to be admitted");
  return {};
}

evidence evidence_of(const contradiction& proof) {
  evidence out;
  out.culprit = proof.culprit;
  if (proof.what == contradiction::kind::two_groups) {
    out.kind = static_cast<std::uint8_t>(statement_kind::group);
    out.subject = attempt_of(proof.first_roster);
    out.first = proof.first_roster.group;
    out.second = proof.second_roster.group;
    out.first_by = proof.first_roster.by;
    out.second_by = proof.second_roster.by;
  } else {
    out.kind = static_cast<std::uint8_t>(statement_kind::vote);
    out.subject = proof.round;
    out.first = proof.first;
    // A decline is a vote for nothing.
    if (proof.what == contradiction::kind::two_votes) out.second = proof.second;
    out.first_by = proof.first_by;
    out.second_by = proof.second_by;
  }
  return out;
}

bool contradiction::holds(const signature_check& is_signed_by) const {
  if (what == kind::two_groups)
    for (const auto* roster : {&first_roster, &second_roster})
      if (!check_roster(*roster, is_signed_by).ok() ||
          roster->members[roster->leader].key != culprit ||
          attempt_of(*roster) != attempt_of(first_roster))
        return false;
  return actors::holds(evidence_of(*this), is_signed_by);
}

} // namespace shoal::actors
