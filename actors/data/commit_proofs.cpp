#include "actors/data/commit_proofs.hpp"

#include "actors/data/sample_ranges.hpp"
#include "actors/trust/identity.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace shoal::actors {

void commit_proofs::prove(const round_certificate& certificate) {
  const auto id = certificate.round();
  if (rounds_.contains(id)) return;
  round out;
  out.epoch = certificate.roster.epoch;
  const auto& members = certificate.roster.members;
  for (const auto& who : members) {
    auto& mine = out.members[who.peer];
    mine.member = member_of(who.key);
    // Impossible samples harm their own member only.
    if (auto ranges = checked_ranges(who.samples, max_ranges_))
      mine.ranges = std::move(*ranges);
    else
      mine.takes_part = false;
  }
  // A member that declined has its samples in another group.
  for (const auto& decline : certificate.declines)
    out.members[members[decline.member].peer].takes_part = false;
  rounds_.emplace(id, std::move(out));
  order_.push_back(id);
  if (order_.size() > most_rounds) {
    rounds_.erase(order_.front());
    order_.pop_front();
  }
}

result<std::vector<commit_proofs::entry>> commit_proofs::agreed(const commit& what) const {
  const auto& of = rounds_.at(what.group);
  if (what.epoch != of.epoch) return failure{"another epoch than that of its round"};
  std::vector<entry> out;
  std::set<peer_id> seen;
  for (const auto& said : what.entries) {
    const auto member = of.members.find(said.peer);
    if (member == of.members.end()) return failure{"a peer that is no member of the round"};
    if (!seen.insert(said.peer).second) return failure{"a member that is there twice"};
    if (!member->second.takes_part) continue;
    const auto ranges = checked_ranges(said.ranges, max_ranges_);
    if (!ranges || *ranges != member->second.ranges)
      return failure{"other samples than the member signed"};
    out.push_back({said.peer, member->second.member, *ranges, said.parts_included});
  }
  return out;
}

std::size_t commit_proofs::ranges_of(const commit& what) {
  std::size_t out = 0;
  for (const auto& entry : what.entries) out += entry.ranges.size();
  return out;
}

bool commit_proofs::wait(waiting what, duration now) {
  auto& mine = shares_[what.member];
  const auto ranges = ranges_of(what.what);
  if (mine.commits >= most_waiting || mine.ranges + ranges > max_ranges_) return false;
  ++mine.commits;
  mine.ranges += ranges;
  auto& of = pending_[what.what.group];
  if (of.commits.empty()) of.asked_at = now;
  of.commits.push_back(std::move(what));
  return true;
}

std::vector<commit_proofs::question> commit_proofs::ask(duration now) {
  std::vector<question> out;
  for (auto& [round, one] : pending_) {
    const auto pause = one.asked > 0 ? timeout_ : period();
    if (one.asked >= one.commits.size() || now - one.asked_at < pause) continue;
    out.push_back({round, one.commits[one.asked++].from});
    one.asked_at = now;
  }
  return out;
}

void commit_proofs::release(const waiting& what) {
  const auto mine = shares_.find(what.member);
  --mine->second.commits;
  mine->second.ranges -= ranges_of(what.what);
  if (mine->second.commits == 0) shares_.erase(mine);
}

std::vector<commit_proofs::waiting> commit_proofs::take(const group_id& round) {
  const auto found = pending_.find(round);
  if (found == pending_.end()) return {};
  std::vector<waiting> out(std::make_move_iterator(found->second.commits.begin()),
                           std::make_move_iterator(found->second.commits.end()));
  pending_.erase(found);
  for (const auto& one : out) release(one);
  return out;
}

std::vector<commit_proofs::waiting> commit_proofs::take_hopeless(duration now) {
  std::vector<group_id> which;
  for (const auto& [round, one] : pending_)
    if (one.asked >= one.commits.size() && now - one.asked_at >= timeout_) which.push_back(round);
  std::vector<waiting> out;
  for (const auto& round : which)
    for (auto& one : take(round)) out.push_back(std::move(one));
  return out;
}

std::vector<commit_proofs::waiting> commit_proofs::take_of(const group_id& round,
                                                           const member_id& member) {
  std::vector<waiting> out;
  const auto found = pending_.find(round);
  if (found == pending_.end()) return out;
  auto& [commits, asked, at] = found->second;
  for (std::size_t i = 0; i < commits.size();) {
    if (commits[i].member != member) {
      ++i;
      continue;
    }
    release(commits[i]);
    out.push_back(std::move(commits[i]));
    commits.erase(commits.begin() + static_cast<std::ptrdiff_t>(i));
    if (i < asked) --asked;
  }
  // The next one is asked at once.
  at = duration::min() / 2;
  if (commits.empty()) pending_.erase(found);
  return out;
}

bool commit_proofs::was_asked(const group_id& round, const member_id& member) const {
  const auto found = pending_.find(round);
  if (found == pending_.end()) return false;
  const auto& commits = found->second.commits;
  return std::any_of(commits.begin(),
                     commits.begin() + static_cast<std::ptrdiff_t>(found->second.asked),
                     [&](const waiting& one) { return one.member == member; });
}

void commit_proofs::forget_waiting() {
  pending_.clear();
  shares_.clear();
}

} // namespace shoal::actors
