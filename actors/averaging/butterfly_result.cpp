// The end of a round: votes, and what a member reports. The rules are in butterfly.hpp.
#include "actors/averaging/butterfly.hpp"
#include "actors/probes.hpp"
#include "kernels/base/digest.hpp"

#include <algorithm>

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
  hasher hash;
  for (const auto& part : outcomes()) {
    hash.add(part.begin).add(part.end);
    for (auto s : part.senders) hash.add(s);
  }
  return id128::from(hash.finish());
}

std::vector<std::pair<std::uint32_t, reason>> butterfly::lost_members() const {
  std::vector<std::pair<std::uint32_t, reason>> out;
  for (std::uint32_t m = 0; m < size_; ++m)
    if (members_[m].down) out.emplace_back(m, members_[m].lost);
  return out;
}

std::uint32_t butterfly::majority() const {
  return config_.conduct->votes_needed(ballot_.majority());
}

void butterfly::vote_if_complete() {
  if (finished_ || ballot_.own() || parts_missing_ > 0 || !takes(self_)) return;
  ballot_.cast(version());
  for (auto to : others_)
    tell(to, caf::make_message(member_ready{group_.group, self_, *ballot_.own()}));
  io_.probe(probes::voted);
  finish_if_decided();
}

void butterfly::on(const member_ready& message, const caf::strong_actor_ptr& sender) {
  // The vote of a member that is down for us counts, too.
  if (!from_member(message.member, sender)) return io_.suspect(0, "vote by a stranger");
  if (!takes(message.member)) return ban(message.member, "vote by a member that takes no result");
  if (!ballot_.cast(message.member, message.version))
    return ban(message.member, "two votes in one round");
  if (!acknowledges_) reply_arrived(message.member);
  finish_if_decided();
}

void butterfly::finish_if_decided() {
  if (finished_) return;
  if (!takes(self_)) return ballot_.announced() ? succeed() : fail_if_hopeless();
  if (!ballot_.own()) return;
  switch (ballot_.count(majority())) {
  case ballot::verdict::won:
    return succeed();
  case ballot::verdict::lost:
    return fail(reason::no_majority);
  case ballot::verdict::open:
    return fail_if_hopeless();
  }
}

void butterfly::succeed() {
  round_result result;
  result.outcome = outcome::ok;
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
  ballot_.announce(message.version);
  finish_if_decided();
}

bool butterfly::idle() const {
  return finished_ && std::all_of(members_.begin(), members_.end(), [this](const member_state& m) {
           return &m == &members_[self_] || m.down || m.finished;
         });
}

} // namespace shoal::actors
