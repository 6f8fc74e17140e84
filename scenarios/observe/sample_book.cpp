#include "scenarios/observe/sample_book.hpp"

#include "actors/averaging/observations.hpp"
#include "actors/data/observations.hpp"
#include "actors/data/sample_ledger.hpp"
#include "actors/pipeline/observations.hpp"
#include "actors/training/observations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace shoal::scenarios {

using actors::sample_range;
using actors::sample_state;

namespace {
constexpr std::size_t most_suspicions = 10'000;

bool is_sender(const std::vector<actors::part_outcome>& parts, std::uint32_t member) {
  return std::any_of(parts.begin(), parts.end(), [&](const actors::part_outcome& part) {
    return part.begin != part.end &&
           std::binary_search(part.senders.begin(), part.senders.end(), member);
  });
}
} // namespace

sample_book::sample_book(sample_book_options options, invariant& into)
    : options_(std::move(options)), check_(into) {
  if (!options_.name_of)
    options_.name_of = [](actors::peer_id id) { return fmt::format("peer {}", id); };
}

void sample_book::suspect(duration time, std::uint64_t begin, std::uint64_t end, std::string text,
                          const actors::group_id& first, const actors::group_id& second,
                          bool heals) {
  if (suspicions_.size() < most_suspicions) {
    suspicions_.push_back({begin, end, time, std::move(text), first, second, heals});
  } else {
    ++suspicions_dropped_;
  }
}

void sample_book::computed(duration time, actors::peer_id peer, const actors::trained& what) {
  peer_state& of = peers_[peer];
  for (const sample_range& range : what.samples) {
    check_.check();
    of.computed.update(
        range.first, range.end(), [&](std::uint64_t begin, std::uint64_t end, bool& done) {
          // The peer may drop the samples of its state's round to repeat that round's step. A late
          // message may bring them again.
          if (done && options_.view == observed_view::whole)
            of.for_round.visit(begin, end, [&](std::uint64_t b, std::uint64_t e, bool dropped) {
              if (!dropped)
                check_.violate(time,
                               fmt::format("{} computed samples {} twice for one contribution",
                                           options_.name_of(peer), range_text(b, e)));
            });
          done = true;
        });
    of.for_round.erase(range.first, range.end());
    of.left_out.erase(range.first, range.end());
    of.given_back.erase(range.first, range.end());
  }
}

void sample_book::contributed(duration time, actors::peer_id peer,
                              const actors::contributed& what) {
  check_.check();
  peer_state& of = peers_[peer];
  std::uint64_t count = 0;
  interval_map<bool> inside;
  for (const sample_range& range : what.samples) {
    count += range.count;
    inside.update(
        range.first, range.end(), [&](std::uint64_t begin, std::uint64_t end, bool& there) {
          if (there) {
            check_.violate(time,
                           fmt::format("{} lists samples {} twice in its contribution to epoch {}",
                                       options_.name_of(peer), range_text(begin, end), what.epoch));
          }
          there = true;
        });
    of.computed.visit(
        range.first, range.end(), [&](std::uint64_t begin, std::uint64_t end, bool done) {
          if (done) return;
          of.given_back.visit(begin, end, [&](std::uint64_t b, std::uint64_t e, bool given_back) {
            if (given_back) return;
            check_.violate(
                time,
                fmt::format("{} contributes samples {} to epoch {} without having computed them",
                            options_.name_of(peer), range_text(b, e), what.epoch));
          });
        });
  }
  if (count != what.weight && options_.weights_are_samples) {
    check_.violate(time, fmt::format("{} contributes {} samples with weight {} to epoch {}",
                                     options_.name_of(peer), count, what.weight, what.epoch));
  }
  const interval_map<bool> before = std::exchange(of.left_out, {});
  const bool retried = std::exchange(of.left_out_epoch, what.epoch) == what.epoch;
  for (const auto& stretch : of.computed.pieces()) {
    inside.visit(stretch.first, stretch.end, [&](std::uint64_t b, std::uint64_t e, bool there) {
      if (there || options_.view == observed_view::local) // the peer may have returned them
        return;
      if (options_.computes_meanwhile) {
        bool again = false;
        if (!retried)
          before.visit(b, e, [&](std::uint64_t, std::uint64_t, bool was) { again = again || was; });
        of.left_out.assign(b, e, true);
        if (!again) return;
      }
      check_.violate(time,
                     fmt::format("{} computed samples {} but does not contribute them to epoch {}",
                                 options_.name_of(peer), range_text(b, e), what.epoch));
    });
  }
  of.group = what.group;
  of.contribution = what.samples;
}

void sample_book::round_ended(duration, actors::peer_id peer, const actors::round_ended& what) {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || found->second.group != what.group) return;
  if (what.outcome == actors::outcome::failed) return; // the gradient is kept for the next attempt
  peer_state& of = found->second;
  const bool included = is_sender(what.parts, what.member);
  for (const sample_range& range : of.contribution) {
    of.computed.erase(range.first, range.end());
    if (included)
      of.given_back.erase(range.first, range.end());
    else // no member received this gradient: the peer may keep it or return its samples
      of.given_back.assign(range.first, range.end(), true);
  }
  of.contribution.clear();
  of.group = {};
}

void sample_book::round_final(const swarm_round& what) {
  if (!what.completed) return;
  // A result that attackers alone have is in no honest state, but they may commit it.
  const bool honest = std::any_of(what.members.begin(), what.members.end(), [&](const auto& who) {
    return who.completed() && !is_attacker(who.peer);
  });
  split_ = split_ || what.outcome == actors::outcome::split;
  before_split_ += split_ ? 0 : 1;
  rounds_.push_back(what.group);
  for (std::uint32_t i = 0; i < what.members.size(); ++i) {
    const round_member& who = what.members[i];
    if (!who.contributed || !is_sender(what.parts, i)) continue;
    if (what.outcome != actors::outcome::failed && honest) {
      use(what.ended, who.peer, what.group, what.epoch, who.samples);
      continue;
    }
    for (const sample_range& range : who.samples) {
      check_.check();
      samples_.update(range.first, range.end(),
                      [](std::uint64_t, std::uint64_t, entry& e) { e.lost_branch = true; });
    }
  }
}

void sample_book::use(duration time, actors::peer_id peer, const actors::group_id& group,
                      std::uint64_t epoch, const std::vector<sample_range>& samples) {
  const auto number = static_cast<std::uint32_t>(rounds_.size());
  for (const sample_range& range : samples) {
    check_.check();
    samples_.update(
        range.first, range.end(), [&](std::uint64_t begin, std::uint64_t end, entry& e) {
          if (e.uses > 0)
            suspect(
                time, begin, end,
                fmt::format("samples {} of {} are in a second completed round (epoch {}, group {})",
                            range_text(begin, end), options_.name_of(peer), epoch, group.hex()),
                e.round > 0 ? rounds_[e.round - 1] : actors::group_id{}, group);
          e.round = number;
          if (e.uses < 255) ++e.uses;
          e.used_ns = time.count();
          settle(e);
        });
  }
}

void sample_book::batch_stepped(duration time, actors::peer_id peer,
                                const actors::batch_stepped& what) {
  // An attacker says of its own samples what it likes, and the shard refuses its commits.
  if (is_attacker(peer)) return;
  // All trainers of a batch name the same step.
  if (rounds_.empty() || rounds_.back() != what.group) {
    before_split_ += split_ ? 0 : 1;
    rounds_.push_back(what.group);
  }
  use(time, peer, what.group, what.epoch, what.samples);
  const auto of = peers_.find(peer);
  if (of == peers_.end()) return;
  for (const sample_range& range : what.samples)
    of->second.computed.erase(range.first, range.end());
}

void sample_book::moved(duration time, const actors::samples_moved& what) {
  shard_seen_ = true;
  const auto of = peers_.find(what.peer);
  for (const sample_range& range : what.samples) {
    check_.check();
    samples_.update(
        range.first, range.end(), [&](std::uint64_t begin, std::uint64_t end, entry& e) {
          const bool ours = e.shard == shard_state::leased && e.holder == what.peer;
          const bool is_final = e.is_final();
          // A replica that was paused or cut off may have moved samples that its successor has
          // committed. It hands these moves over when it is back.
          const bool overtaken = options_.takeovers && is_final;
          const bool first_move = options_.takeovers && e.shard == shard_state::unknown;
          const bool of_others = options_.view == observed_view::local && first_move;
          const bool claim = first_move && is_attacker(what.peer);
          e.claimed = e.claimed || claim;
          const auto wrong = [&](std::string_view doing) {
            if (of_others || claim) return;
            constexpr std::string_view names[] = {"unknown", "leased", "committed", "returned",
                                                  "partial"};
            suspect(time, begin, end,
                    fmt::format("the shard {} samples {} of {}, which were {}{}", doing,
                                range_text(begin, end), options_.name_of(what.peer),
                                names[static_cast<std::size_t>(e.shard)],
                                e.shard == shard_state::leased ? " to " + options_.name_of(e.holder)
                                                               : ""),
                    {}, {}, overtaken);
          };
          switch (what.to) {
          case sample_state::leased:
            if (e.shard != shard_state::unknown && e.shard != shard_state::returned && !ours)
              wrong("leases");
            if (overtaken) break;
            e.shard = shard_state::leased;
            e.holder = what.peer;
            break;
          case sample_state::returned:
            if (!ours && !(options_.takeovers && !is_final &&
                           (what.peer == 0 || e.shard == shard_state::returned)))
              wrong("takes back");
            if (overtaken && what.peer == 0) break;
            e.shard = shard_state::returned;
            e.holder = 0;
            if (of != peers_.end()) {
              interval_map<bool>& computed = of->second.computed;
              interval_map<bool>& given_back = of->second.given_back;
              computed.update(begin, end, [&](std::uint64_t b, std::uint64_t stop, bool& done) {
                if (done) given_back.assign(b, stop, true);
                done = false;
              });
              of->second.left_out.erase(begin, end);
            }
            break;
          case sample_state::committed:
          case sample_state::partial:
            if (!ours && e.shard != shard_state::returned && !overtaken) wrong("commits");
            e.shard =
                what.to == sample_state::committed ? shard_state::committed : shard_state::partial;
            e.holder = 0;
            break;
          }
          // The commit may belong to a round that is not final yet, while the round of an earlier
          // use turns out to be lost.
          if (e.round == 0 || what.group.is_zero() || rounds_[e.round - 1] == what.group) settle(e);
        });
  }
}

/// The peer has gone over to the next state. Its computed samples now belong to that state's round.
void sample_book::went_over(peer_state& of) {
  if (options_.computes_meanwhile) of.for_round = of.computed;
}

void sample_book::repeated_step(actors::peer_id peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  peer_state& of = found->second;
  // The peer returns these samples to the shard. The shard keeps those that are committed already.
  for (const auto& stretch : of.for_round.pieces()) {
    of.computed.erase(stretch.first, stretch.end);
    // The shard may lease the samples to this peer again, for another round.
    of.left_out.erase(stretch.first, stretch.end);
    of.given_back.assign(stretch.first, stretch.end, true);
  }
  went_over(of);
}

void sample_book::stepped(actors::peer_id peer, const actors::stepped& what) {
  // A step without a round: the peer returns that round's samples if it can reach the shard.
  if (what.group.is_zero())
    repeated_step(peer);
  else if (const auto of = peers_.find(peer); of != peers_.end())
    went_over(of->second);
  last_step_ = what.after;
  step_made({what.before, what.after, what.group});
}

void sample_book::step_made(const actors::step_made& what) {
  // Long before so many further steps, a split round is final and a lost sample is leased again.
  constexpr std::size_t kept = 4096;
  if (!origin_) origin_ = what.before;
  if (!steps_.try_emplace(what.after, step{what.before, what.group}).second) return;
  if (!options_.one_branch) befores_.emplace(what.group, what.before);
  if (split_) return;
  first_steps_.push_back(what.after);
  if (first_steps_.size() <= kept) return;
  const auto oldest = steps_.find(first_steps_.front());
  befores_.erase(oldest->second.group);
  steps_.erase(oldest);
  first_steps_.pop_front();
}

void sample_book::reported(const actors::samples_reported& what) {
  const auto of = peers_.find(what.peer);
  for (const sample_range& range : what.samples) {
    samples_.update(range.first, range.end(),
                    [](std::uint64_t, std::uint64_t, entry& e) { e.reported = true; });
    if (of == peers_.end()) continue;
    of->second.computed.update(range.first, range.end(),
                               [&](std::uint64_t begin, std::uint64_t end, bool& done) {
                                 if (done) of->second.given_back.assign(begin, end, true);
                                 done = false;
                               });
  }
}

void sample_book::finish_stretch(
    duration time, std::uint64_t begin, std::uint64_t end, const entry& e,
    const std::function<std::optional<duration>(actors::peer_id)>& died) {
  check_.check();
  const std::uint64_t count = end - begin;
  const std::string which = range_text(begin, end);
  const bool finished = e.is_final();
  if (e.reported || (e.round > 0 && lost(rounds_[e.round - 1]))) return;
  if (options_.takeovers && e.shard == shard_state::unknown && e.uses == 0 &&
      (end % actors::index_block_size == 0 || claimed_gap_ends_.contains(end)))
    return;
  if (e.shard == shard_state::unknown) {
    if (options_.view == observed_view::whole || !options_.takeovers)
      check_.violate(time, fmt::format("samples {} are in no state: the shard lost them", which),
                     count);
  } else if (options_.view == observed_view::local) {
    return; // other hosts observe the rounds and which peers live
  } else if (e.uses > 0 && !finished && time - duration(e.used_ns) > options_.settle_time) {
    check_.violate(
        time,
        fmt::format("samples {} are in a round that ended at {} but were never committed", which,
                    time_text(duration(e.used_ns))),
        count);
  } else if (finished && e.uses == 0 && !e.lost_branch && !options_.commits_may_lie) {
    check_.violate(time, fmt::format("samples {} are committed but in no completed round", which),
                   count);
  } else if (e.shard == shard_state::leased && e.uses == 0) {
    const std::optional<duration> death = died(e.holder);
    if (death && time - *death > options_.lease_time + options_.lease_time / 4) {
      check_.violate(time,
                     fmt::format("samples {} are still leased to {}, gone since {}", which,
                                 options_.name_of(e.holder), time_text(*death)),
                     count);
    }
  }
}

void sample_book::find_lost(const std::optional<actors::state_id>& leading) {
  if (!leading) return;
  std::set<actors::group_id> led_to_it;
  std::set<actors::state_id> seen;
  actors::group_id first;
  bool whole = true; // every step that led to the leading state is known
  // The leading state may be so new that no peer has gone over to it yet.
  std::vector<actors::state_id> open{steps_.contains(*leading) ? *leading : last_step_};
  while (!open.empty()) {
    const actors::state_id state = open.back();
    open.pop_back();
    if (!seen.insert(state).second) continue;
    const auto at = steps_.find(state);
    if (at == steps_.end()) {
      whole = whole && state == origin_;
      continue;
    }
    open.push_back(at->second.before);
    if (at->second.group.is_zero()) // an epoch that fills the pipeline has no round
      continue;
    led_to_it.insert(first = at->second.group);
    // Where parameters are averaged, the states of all members led to it.
    for (auto [i, end] = befores_.equal_range(at->second.group); i != end; ++i)
      open.push_back(i->second);
  }
  // If every peer that had a state died, the swarm began anew: no earlier round led to its state.
  // Otherwise the rounds before the first known step cannot be judged.
  auto from = rounds_.begin();
  if (!whole)
    from = options_.one_branch ? std::find(rounds_.begin(), rounds_.end(), first)
                               : rounds_.begin() + static_cast<std::ptrdiff_t>(before_split_);
  for (auto at = from; at != rounds_.end(); ++at)
    if (!led_to_it.contains(*at)) lost_.insert(*at);
}

/// Clears what is not needed about samples that were used once and committed, so that their
/// intervals merge.
void sample_book::settle(entry& what) const noexcept {
  if (what.uses != 1 || !what.is_final()) return;
  if (!split_) what.round = 0;
  if (what.round == 0) what.holder = 0, what.used_ns = 0, what.lost_branch = false;
}

void sample_book::find_claimed_gaps() {
  if (!options_.takeovers || !options_.is_honest) return;
  // Backwards: the next index above that an honest peer had from a shard.
  auto honest = std::numeric_limits<std::uint64_t>::max();
  const auto pieces = samples_.pieces();
  for (auto p = pieces.rbegin(); p != pieces.rend(); ++p) {
    if (p->value.shard == shard_state::unknown) continue;
    if (!p->value.claimed) honest = p->first;
    // A claim also makes the shard go on behind it, so honest peers may have indices there.
    if (p->value.claimed ||
        honest / actors::index_block_size != p->first / actors::index_block_size)
      claimed_gap_ends_.insert(p->first);
  }
}

void sample_book::finish(duration time,
                         const std::function<std::optional<duration>(actors::peer_id)>& died,
                         const std::optional<actors::state_id>& leading) {
  find_lost(leading);
  for (const suspicion& what : suspicions_) {
    if (lost(what.first) || lost(what.second)) continue;
    bool excused = true;
    samples_.visit(what.begin, what.end, [&](std::uint64_t, std::uint64_t, const entry& e) {
      excused = excused && (e.reported || (what.heals && e.is_final() && e.uses <= 1));
    });
    if (!excused) check_.violate(what.time, what.text, what.end - what.begin);
  }
  if (suspicions_dropped_ > 0) {
    check_.violate(time, fmt::format("{} further suspicions were not kept", suspicions_dropped_),
                   suspicions_dropped_);
  }
  suspicions_.clear();
  if (!shard_seen_ || samples_.empty()) return; // a run without data only averages
  find_claimed_gaps();
  samples_.visit(samples_.front().first, samples_.back().end,
                 [&](std::uint64_t begin, std::uint64_t end, const entry& e) {
                   finish_stretch(time, begin, end, e, died);
                 });
}

} // namespace shoal::scenarios
