#include "scenarios/observe/rounds.hpp"

#include "actors/averaging/observations.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/reasons.hpp"

#include <algorithm>

namespace shoal::scenarios {

using actors::outcome;
using actors::reason;

namespace {

constexpr std::size_t kept_rounds = 64;           // final rounds that a late member still finds
constexpr std::uint64_t epochs_with_retries = 16; // epochs for which retries are recognized

bool same_part(const actors::part_outcome& a, const actors::part_outcome& b) {
  return a.begin == b.begin && a.end == b.end && a.weight == b.weight && a.senders == b.senders;
}

outcome judge(std::uint64_t completed, std::uint64_t partial, std::uint64_t failed) {
  if (completed == 0) return outcome::failed;
  if (failed != 0) return outcome::split;
  return partial != 0 ? outcome::partial : outcome::ok;
}

/// A reason of more weight explains one of less: a member that cancelled did so because of a
/// failure elsewhere.
int weight_of(reason why) {
  if (why == reason::none) return 0;
  return why == reason::cancelled ? 1 : 2;
}

} // namespace

bool is_included(const swarm_round& what, std::uint32_t index) {
  if (!what.completed || what.outcome == outcome::failed) return false;
  return std::any_of(what.parts.begin(), what.parts.end(), [&](const actors::part_outcome& part) {
    return part.begin != part.end &&
           std::binary_search(part.senders.begin(), part.senders.end(), index);
  });
}

std::uint64_t samples_included(const swarm_round& what) {
  std::uint64_t out = 0;
  for (std::uint32_t i = 0; i < what.members.size(); ++i)
    if (is_included(what, i)) out += actors::index_count(what.members[i].samples);
  return out;
}

round_book::round_book(std::function<void(const swarm_round&)> on_final, duration grace,
                       observed_view view)
    : on_final_(std::move(on_final)), grace_(grace), view_(view) {}

round_book::open_round& round_book::find(duration time, const actors::group_id& group,
                                         std::uint64_t epoch, std::uint32_t members) {
  const auto [at, added] = open_.try_emplace(group);
  open_round& found = at->second;
  if (added) {
    found.what.group = group;
    found.what.epoch = epoch;
    found.what.started = time;
  }
  if (found.what.members.size() < members) found.what.members.resize(members);
  return found;
}

round_member& round_book::member(open_round& in, duration time, std::uint32_t index,
                                 actors::peer_id peer) {
  in.last_sign = time;
  if (in.what.members.size() <= index) in.what.members.resize(index + 1);
  round_member& who = in.what.members[index];
  if (!who.known) {
    who.known = true;
    who.peer = peer;
    who.dead = dead_.contains(peer);
    rounds_of_[peer].push_back(in.what.group);
  }
  return who;
}

void round_book::contributed(duration time, actors::peer_id peer, const actors::contributed& what,
                             double loss) {
  const auto is_final = [&](const final_round& r) { return r.group == what.group; };
  if (std::any_of(recent_.begin(), recent_.end(), is_final)) return;
  open_round& in = find(time, what.group, what.epoch, what.members);
  round_member& who = member(in, time, what.member, peer);
  in.what.first_of_two = in.what.first_of_two || what.first_of_two;
  who.contributed = true;
  who.takes = what.takes;
  who.weight = what.weight;
  who.samples = what.samples;
  who.values = what.values;
  who.loss = loss;
}

void round_book::ended(duration time, actors::peer_id peer, const actors::round_ended& what) {
  if (what.group.is_zero()) return ended_without_group(peer, what);
  const auto is_final = [&](const final_round& r) { return r.group == what.group; };
  if (std::any_of(recent_.begin(), recent_.end(), is_final)) return late(what);

  open_round& in = find(time, what.group, what.epoch, what.members);
  round_member& who = member(in, time, what.member, peer);
  if (what.started_ns != 0)
    in.what.started =
        std::min(in.what.started, duration(static_cast<std::int64_t>(what.started_ns)));
  in.what.ended = time;
  who.ended = true;
  who.outcome = what.outcome;
  who.reason = what.reason;
  if (who.completed()) {
    if (!in.what.completed) {
      in.what.completed = true;
      in.what.parts = what.parts;
      in.what.mean = what.values;
    } else {
      // The comparison happens now, so that only one member's copy has to be kept.
      who.same_values = in.what.mean == what.values;
      who.same_parts = std::equal(what.parts.begin(), what.parts.end(), in.what.parts.begin(),
                                  in.what.parts.end(), same_part);
    }
  }
  finish_if_final(open_.find(what.group), time);
}

void round_book::ended_without_group(actors::peer_id peer, const actors::round_ended& what) {
  if (what.reason == reason::none) return;
  if (!attempts_.emplace(what.epoch, peer).second) return;
  ++counts_.by_reason[std::string(to_string(what.reason))];
  const bool without_us = what.reason == reason::group_closed ||
                          what.reason == reason::out_of_sync || what.reason == reason::cancelled;
  if (!without_us && failed_epochs_.insert(what.epoch).second)
    ++counts_.by_outcome[static_cast<std::size_t>(outcome::failed)];
  const std::uint64_t newest = attempts_.rbegin()->first;
  if (newest < epochs_with_retries) return;
  attempts_.erase(attempts_.begin(), attempts_.lower_bound({newest - epochs_with_retries, 0}));
  failed_epochs_.erase(failed_epochs_.begin(),
                       failed_epochs_.lower_bound(newest - epochs_with_retries));
}

void round_book::late(const actors::round_ended& what) {
  ++counts_.late;
  const auto found = std::find_if(recent_.begin(), recent_.end(),
                                  [&](const final_round& r) { return r.group == what.group; });
  count(*found, -1);
  if (what.outcome == outcome::failed) {
    ++found->failed;
  } else {
    ++found->completed;
    found->partial += what.outcome == outcome::partial ? 1 : 0;
  }
  found->outcome = judge(found->completed, found->partial, found->failed);
  if (weight_of(what.reason) > weight_of(found->reason)) found->reason = what.reason;
  count(*found, +1);
}

void round_book::killed(duration time, actors::peer_id peer) {
  dead_.emplace(peer, time);
  const auto found = rounds_of_.find(peer);
  if (found == rounds_of_.end()) return;
  const std::vector<actors::group_id> groups = found->second;
  for (const actors::group_id& group : groups) {
    const auto at = open_.find(group);
    if (at == open_.end()) continue;
    for (round_member& who : at->second.what.members)
      if (who.known && who.peer == peer) who.dead = true;
    finish_if_final(at, time);
  }
}

bool round_book::is_final(const open_round& what, duration time) const {
  bool all_known = true;
  for (const round_member& who : what.what.members) {
    if (!who.known)
      all_known =
          all_known && view_ == observed_view::local; // a member on another host stays unknown
    else if (!who.ended && !who.dead)
      return false;
  }
  return (all_known && !what.what.members.empty()) || time - what.last_sign >= grace_;
}

bool round_book::finish_if_final(iterator at, duration time) {
  if (!is_final(at->second, time)) return false;
  close(at, false);
  return true;
}

void round_book::advance(duration time) {
  if (time < next_sweep_) return;
  next_sweep_ = time + grace_ / 4;
  for (auto at = open_.begin(); at != open_.end();) {
    const auto next = std::next(at);
    finish_if_final(at, time);
    at = next;
  }
}

void round_book::finish(duration time) {
  while (!open_.empty()) {
    open_round& what = open_.begin()->second;
    const bool waits =
        std::any_of(what.what.members.begin(), what.what.members.end(),
                    [](const round_member& who) { return who.known && !who.ended && !who.dead; });
    const bool begun = std::any_of(what.what.members.begin(), what.what.members.end(),
                                   [](const round_member& who) { return who.ended; });
    what.what.ended = std::max(what.what.ended, begun ? what.what.ended : time);
    close(open_.begin(), waits);
  }
}

void round_book::close(iterator at, bool unfinished) {
  swarm_round& what = at->second.what;
  final_round last{.group = what.group, .first_of_two = what.first_of_two};
  final_round of_dead;
  for (const round_member& who : what.members) {
    if (!who.known) continue;
    std::erase(rounds_of_[who.peer], what.group);
    if (rounds_of_[who.peer].empty()) rounds_of_.erase(who.peer);
    // How a host that only reduces ended is not known to the other members.
    if (!who.ended || (!who.takes && view_ == observed_view::whole)) continue;
    final_round& to = who.dead ? of_dead : last;
    if (who.outcome != outcome::failed) {
      ++to.completed;
      to.partial += who.outcome == outcome::partial ? 1 : 0;
    } else {
      ++to.failed;
    }
    if (weight_of(who.reason) > weight_of(to.reason)) to.reason = who.reason;
  }
  if (last.completed + last.failed == 0) {
    of_dead.group = what.group;
    of_dead.first_of_two = what.first_of_two;
    last = of_dead;
    if (last.completed + last.failed == 0)
      last.reason = reason::sender_lost; // every member was killed in the round
  }
  last.outcome = judge(last.completed, last.partial, last.failed);
  what.outcome = last.outcome;
  what.reason = last.reason;
  what.unfinished = unfinished;
  if (unfinished) {
    ++counts_.unfinished;
  } else {
    count(last, +1);
    if (last.completed > 0) {
      counts_.completed += last.first_of_two ? 0 : 1;
      counts_.completed_seconds += to_seconds(what.ended - what.started);
    }
    recent_.push_back(last);
    if (recent_.size() > kept_rounds) recent_.pop_front();
  }
  const swarm_round done = std::move(what);
  open_.erase(at);
  if (on_final_) on_final_(done);
}

void round_book::count(const final_round& what, int by) {
  // Adds or subtracts one. A counter never goes below zero: each -1 follows its +1.
  if (what.first_of_two && (what.outcome == outcome::ok || what.outcome == outcome::partial))
    return;
  counts_.by_outcome[static_cast<std::size_t>(what.outcome)] += static_cast<std::uint64_t>(by);
  if (what.reason == reason::none) return;
  const std::string name(to_string(what.reason));
  if ((counts_.by_reason[name] += static_cast<std::uint64_t>(by)) == 0)
    counts_.by_reason.erase(name);
}

} // namespace shoal::scenarios
