// The end of a round: votes, and what a member reports. The rules are in butterfly.hpp.
#include "actors/averaging/butterfly.hpp"
#include "actors/averaging/guard.hpp"
#include "actors/probes.hpp"
#include "actors/trust/identity.hpp"
#include "kernels/base/digest.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

std::vector<part_outcome> butterfly::outcomes() const {
  std::vector<part_outcome> out;
  for (std::uint32_t p = 0; p < size_; ++p) {
    const auto& part = parts_[p];
    const auto first = out.size();
    for (std::uint32_t k = 0; k < part.chunks.size(); ++k) {
      const auto& senders = *part.chunks[k].senders;
      const auto begin = group_.boundaries[p] + part.grid.offset(k) / 4;
      const auto end = begin + part.grid.size(k) / 4;
      if (out.size() > first && out.back().senders == senders) {
        out.back().end = end;
        continue;
      }
      std::uint64_t weight = 0;
      for (auto s : senders) weight += group_.members[s].weight;
      out.push_back({begin, end, senders, weight, p});
    }
  }
  return out;
}

id128 butterfly::version() const {
  std::vector<id128> chunks;
  for (const auto& part : parts_)
    for (const auto& chunk : part.chunks) chunks.push_back(chunk.version);
  return version_of(chunks, request_.first_version);
}

std::vector<std::pair<std::uint32_t, reason>> butterfly::lost_members() const {
  std::vector<std::pair<std::uint32_t, reason>> out;
  for (std::uint32_t m = 0; m < size_; ++m)
    if (members_[m].down) out.emplace_back(m, members_[m].lost);
  return out;
}

std::uint32_t butterfly::majority() const {
  return config_.conduct->votes_needed(ballot_.needed());
}

bool butterfly::may_vote_for(std::uint32_t p, const std::vector<std::uint32_t>& senders,
                             std::uint32_t from) {
  const auto chunks = static_cast<std::uint32_t>(parts_[p].chunks.size());
  // The reducer sends a list before it acknowledges what comes after the list.
  if (request_.weight > 0 && from == p && acknowledges_ && members_[p].in_time == chunks &&
      !std::binary_search(senders.begin(), senders.end(), self_)) {
    io_.suspect(group_.members[p].peer, "a part without the values that its reducer acknowledged");
    return false;
  }
  std::size_t alive = 0, in = 0;
  auto next = senders.begin();
  for (std::uint32_t m = 0; m < size_; ++m) {
    const bool listed = next != senders.end() && *next == m;
    if (listed) ++next;
    if (group_.members[m].weight == 0 || members_[m].down) continue;
    ++alive;
    in += listed ? 1 : 0;
  }
  return 2 * in >= alive;
}

void butterfly::vote_if_complete() {
  if (finished_ || ballot_.own() || parts_missing_ > 0 || !takes(self_)) return;
  if (censored_) return fail(reason::no_majority);
  const auto mine = version();
  ballot_.cast(mine, io_.sign(vote_statement(group_.group, mine)));
  const auto by = ballot_.votes_for(mine);
  const auto own = std::find_if(
      by.begin(), by.end(), [this](const member_signature& one) { return one.member == self_; });
  for (auto to : others_)
    tell(to, caf::make_message(member_ready{group_.group, self_, mine, own->by}));
  io_.probe(probes::voted);
  tell_of_disagreement();
  finish_if_decided();
}

/// A member that voted for another version got other values of some part. With a guard, the
/// reducers' signatures show whose.
void butterfly::tell_of_disagreement() {
  if (!ballot_.own()) return;
  const auto same = ballot_.votes_for(*ballot_.own());
  for (auto m : others_) {
    if (!ballot_.has_voted(m) ||
        std::any_of(same.begin(), same.end(), [m](const auto& one) { return one.member == m; }))
      continue;
    if (guard_ != nullptr) guard_->disagrees(m);
    if (!std::exchange(members_[m].told, true))
      tell(m, caf::make_message(part_versions{group_.group, self_, held_versions()}));
  }
}

std::vector<id128> butterfly::held_versions() const {
  std::vector<id128> out;
  for (const auto& part : parts_) {
    std::vector<id128> chunks;
    for (const auto& chunk : part.chunks) chunks.push_back(chunk.version);
    out.push_back(version_of(chunks));
  }
  return out;
}

void butterfly::on(const part_versions& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "versions of parts by a stranger")) return;
  auto& known = members_[message.member].versions;
  if (message.versions.size() != size_ || !known.empty())
    return ban(message.member, "versions of parts that there are not, or once more");
  known = message.versions;
}

/// A member may lie about what it holds. So a part counts as the same everywhere while more than
/// two thirds hold it. If that is true of each part, several reducers tell a few members each
/// something else. One of them has the part with most exceptions.
std::set<member_id> butterfly::bad_reducers() const {
  if (!ballot_.own()) return {};
  std::vector<std::vector<id128>> held;
  const auto voted_alike = ballot_.votes_for(*ballot_.own()).size();
  held.assign(voted_alike, held_versions());
  for (const auto& member : members_)
    if (!member.versions.empty()) held.push_back(member.versions);
  if (held.size() < majority()) return {};
  std::map<std::uint32_t, std::size_t> agreeing; // by part
  for (std::uint32_t p = 0; p < size_; ++p) {
    if (p == self_ || parts_[p].chunks.empty() || !parts_[p].direct) continue;
    std::map<id128, std::size_t> counts;
    for (const auto& one : held) agreeing[p] = std::max(agreeing[p], ++counts[one[p]]);
  }
  auto fewest = held.size();
  for (const auto& [part, count] : agreeing) fewest = std::min(fewest, count);
  if (fewest == held.size()) return {};
  const auto most = std::max<std::size_t>(fewest, majority() - 1);
  std::set<member_id> out;
  for (const auto& [part, count] : agreeing)
    if (count <= most) out.insert(member_of(group_.members[part].key));
  return out;
}

bool butterfly::take_vote(std::uint32_t m, const id128& version, const signature& by) {
  if (ballot_.cast(m, version, by)) return true;
  convict(m, ballot_.contradicts(m, version, by));
  return false;
}

bool butterfly::take_decline(std::uint32_t m, const signature& by) {
  if (ballot_.decline(m, by)) return true;
  convict(m, ballot_.contradicts(m, by));
  return false;
}

/// A decline of the group is one of both rounds.
bool butterfly::is_decline(std::uint32_t m, const signature& by) const {
  const auto& key = group_.members[m].key;
  return io_.is_signed_by(key, decline_statement(group_.group), by) ||
         (group_.group != first_group_ &&
          io_.is_signed_by(key, decline_statement(first_group_), by));
}

void butterfly::convict(std::uint32_t m, contradiction proof) {
  proof.round = group_.group;
  proof.culprit = group_.members[m].key;
  io_.convict(group_.members[m].peer, proof);
  lose_and_go_on(m, reason::bad_message);
}

void butterfly::on(const member_ready& message, const caf::strong_actor_ptr& sender) {
  // The vote of a member that is down for us counts, too.
  if (!from_member(message.member, sender))
    return io_.suspect(io_.peer_of(sender), "vote by a stranger");
  if (!takes(message.member)) return ban(message.member, "vote by a member that takes no result");
  if (!io_.is_signed_by(group_.members[message.member].key,
                        vote_statement(group_.group, message.version), message.by))
    return ban(message.member, "vote without a signature");
  if (!take_vote(message.member, message.version, message.by)) return;
  if (!acknowledges_) reply_arrived(message.member);
  tell_of_disagreement();
  finish_if_decided();
}

void butterfly::finish_if_decided() {
  if (finished_) return;
  if (!takes(self_)) {
    if (ballot_.winner(majority())) return succeed();
    ask_for_certificate(false);
    return fail_if_hopeless();
  }
  if (!ballot_.own()) return;
  switch (ballot_.count(majority())) {
  case ballot::verdict::won:
    return succeed();
  case ballot::verdict::lost:
    return fail(reason::no_majority);
  case ballot::verdict::open:
    ask_for_certificate(false);
    return fail_if_hopeless();
  }
}

/// Asks members that say they have the certificate. Unless `now`, only if the votes themselves
/// cannot come any more: they follow each other closely.
void butterfly::ask_for_certificate(bool now) {
  if (finished_ || (takes(self_) && !ballot_.own())) return;
  if (!now)
    for (std::uint32_t m = 0; m < size_; ++m)
      if (m != self_ && takes(m) && !ballot_.has_voted(m) && !members_[m].down && !apart(m)) return;
  for (auto m : others_)
    if (members_[m].has_certificate && !members_[m].asked && !members_[m].down && !apart(m)) {
      members_[m].asked = true;
      return tell(m, caf::make_message(certificate_wanted{group_.group, self_}));
    }
}

void butterfly::on(const certificate_wanted& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "request for a certificate by a stranger")) return;
  const auto won = ballot_.winner(majority());
  // Once: a member that could ask again and again would have our line for itself.
  if (!finished_ || !won || std::exchange(members_[message.member].given, true)) return;
  tell(message.member,
       caf::make_message(certificate_given{group_.group, self_, *won, ballot_.votes_for(*won),
                                           ballot_.declines_for(*won)}));
}

void butterfly::on(const certificate_given& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "certificate by a stranger")) return;
  if (!members_[message.member].asked)
    return ban(message.member, "certificate that nobody asked for");
  if (finished_) return;
  // Each check costs a signature, so their number comes first.
  std::vector<std::uint8_t> spoke(size_);
  const auto is_new = [&](std::uint32_t m) {
    return m < size_ && takes(m) && std::exchange(spoke[m], std::uint8_t{1}) == 0;
  };
  for (const auto* each : {&message.votes, &message.declines})
    for (const auto& one : *each)
      if (!is_new(one.member))
        return ban(message.member, "certificate in which a member counts twice");
  std::uint32_t voters = 0;
  for (std::uint32_t m = 0; m < size_; ++m) voters += takes(m) ? 1 : 0;
  voters -= static_cast<std::uint32_t>(message.declines.size());
  if (message.votes.size() < config_.conduct->votes_needed(votes_needed(voters)))
    return ban(message.member, "certificate with too few votes");
  const auto statement = vote_statement(group_.group, message.version);
  for (const auto& vote : message.votes)
    if (!io_.is_signed_by(group_.members[vote.member].key, statement, vote.by))
      return ban(message.member, "certificate with a vote that nobody signed");
  for (const auto& decline : message.declines)
    if (!is_decline(decline.member, decline.by))
      return ban(message.member, "certificate with a decline that nobody signed");
  ballot_.certify(message.version, message.votes, message.declines);
  // A member may have told us another version.
  for (const auto& vote : message.votes)
    if (vote.member != self_ && !finished_) take_vote(vote.member, message.version, vote.by);
  finish_if_decided();
}

void butterfly::succeed() {
  round_result result;
  result.outcome = outcome::ok;
  auto certificate = std::make_shared<round_certificate>();
  certificate->roster = group_;
  certificate->roster.group = first_group_;
  certificate->second = group_.group != first_group_;
  certificate->version = *ballot_.winner(majority());
  certificate->votes = ballot_.votes_for(certificate->version);
  certificate->declines = ballot_.declines_for(certificate->version);
  result.certificate = std::move(certificate);
  if (!takes(self_)) return finish(std::move(result), false);
  result.given = values_;
  result.values = values_.is_size_only() ? payload::size_only(values_.size())
                                         : result_.slice(0, values_.size());
  auto givers =
      static_cast<std::size_t>(std::count_if(group_.members.begin(), group_.members.end(),
                                             [](const member_info& m) { return m.weight > 0; }));
  auto lost = reason::sender_timeout;
  for (const auto& member : members_)
    if (member.down && !member.finished) lost = member.lost;
  result.parts = outcomes();
  for (const auto& part : result.parts)
    if (part.senders.size() < givers) {
      result.outcome = outcome::partial;
      if (trouble_ == reason::none) trouble_ = lost;
    }
  result.reason = result.outcome == outcome::ok ? reason::none : trouble_;
  io_.probe(probes::before_commit);
  finish(std::move(result), false);
}

void butterfly::fail(reason why) {
  if (finished_) return;
  round_result result;
  result.outcome = outcome::failed;
  result.reason = why;
  if (why == reason::no_majority) result.bad_reducers = bad_reducers();
  finish(std::move(result), true);
}

void butterfly::finish(round_result result, bool failed) {
  finished_ = true;
  result.group = group_.group;
  result.epoch = group_.epoch;
  result.member = self_;
  result.members = group_.members;
  for (std::uint32_t m = 0; m < size_; ++m)
    if (members_[m].lost == reason::member_declined) result.declined.push_back(m);
  result.started = started_;
  result.part_times = part_times_;
  result.line_times = line_times(layout_, group_.members, request_.codecs, config_.round_timeout);
  if (failed) {
    for (auto& part : parts_) part.reduction.reset();
    outbox_.clear();
  }
  const auto version = ballot_.own().value_or(id128{});
  for (auto to : others_)
    tell(to, caf::make_message(member_finished{
                 group_.group, self_, failed ? std::uint8_t{1} : std::uint8_t{0}, version}));
  done_(std::move(result));
}

void butterfly::on_round_timeout() {
  fail(reason::reducer_timeout);
}

void butterfly::on(const member_finished& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "farewell by a stranger")) return;
  auto& member = members_[message.member];
  if (member.finished && !apart(message.member)) return;
  member.finished = true;
  // The round of that member is over, and no member must wait for it.
  if (message.failed) return lose_and_go_on(message.member, reason::sender_lost);
  member.has_certificate = true;
  finish_if_decided();
}

bool butterfly::idle() const {
  return finished_ && std::all_of(members_.begin(), members_.end(), [this](const member_state& m) {
           return &m == &members_[self_] || m.down || m.finished;
         });
}

} // namespace shoal::actors
