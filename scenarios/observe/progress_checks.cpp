#include "scenarios/observe/progress_checks.hpp"

#include "actors/averaging/observations.hpp"
#include "actors/training/observations.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::scenarios {

using actors::peer_id;
using actors::peer_phase;

namespace {
constexpr std::uint64_t kept_epochs = 64;
}

progress_checks::progress_checks(progress_options options, invariant& monotonic,
                                 invariant& staleness, invariant& lineage)
    : options_(std::move(options)), monotonic_(monotonic), staleness_(staleness),
      lineage_(lineage) {
  if (!options_.name_of) options_.name_of = [](peer_id id) { return fmt::format("peer {}", id); };
}

void progress_checks::reach(duration time, peer_id peer, peer_state& of, std::uint64_t epoch,
                            std::string_view doing, bool may_go_back) {
  monotonic_.check();
  if (epoch < of.epoch && !may_go_back) {
    monotonic_.violate(time, fmt::format("{} {} at epoch {} after epoch {}", options_.name_of(peer),
                                         doing, epoch, of.epoch));
  }
  if (epoch == of.epoch) return;
  if (of.in_sync) {
    remove(peer, of.epoch);
    place(time, peer, epoch);
  }
  of.epoch = epoch;
  if (epoch > highest_) {
    highest_ = epoch;
    forget();
  }
}

void progress_checks::set_in_sync(duration time, peer_id peer, peer_state& of, bool in_sync) {
  if (of.in_sync == in_sync) return;
  of.in_sync = in_sync;
  if (in_sync) {
    ++in_sync_;
    place(time, peer, of.epoch);
  } else {
    --in_sync_;
    remove(peer, of.epoch);
  }
}

void progress_checks::place(duration time, peer_id peer, std::uint64_t epoch) {
  if (options_.view == observed_view::whole) staleness_.check();
  at_epoch_[epoch].emplace(peer, time);
  // A new leading epoch also counts for the epochs between, which no peer was seen at.
  for (std::uint64_t e = reached_.empty() ? epoch : reached_.rbegin()->first + 1; e <= epoch; ++e)
    reached_.emplace(e, time);
}

void progress_checks::remove(peer_id peer, std::uint64_t epoch) {
  complained_.erase(peer);
  const auto found = at_epoch_.find(epoch);
  if (found == at_epoch_.end()) return;
  found->second.erase(peer);
  if (!found->second.empty()) return;
  at_epoch_.erase(found);
  // Without the peer that led, the leading epoch falls. Being behind counts anew from there.
  if (at_epoch_.empty()) {
    reached_.clear();
  } else {
    reached_.erase(reached_.upper_bound(at_epoch_.rbegin()->first), reached_.end());
    reached_.erase(reached_.begin(), reached_.lower_bound(at_epoch_.begin()->first));
  }
}

void progress_checks::look_for_stragglers(duration time) {
  next_look_ = time + options_.staleness_allowed / 8;
  if (at_epoch_.empty()) return;
  if (options_.one_branch) look_for_branches(time);
  const std::uint64_t lead = at_epoch_.rbegin()->first;
  for (const auto& [epoch, peers] : at_epoch_) {
    const std::uint64_t too_far = epoch + options_.max_epoch_difference + 1;
    if (too_far > lead) return;
    const auto since = reached_.lower_bound(too_far);
    if (since == reached_.end() || !too_long(time, since->second)) continue;
    for (const auto& [peer, here_since] : peers) {
      if (!too_long(time, here_since) || !complained_.insert(peer).second) continue;
      staleness_.violate(
          time, fmt::format("{} is in sync at epoch {} while others lead at {}, since {}",
                            options_.name_of(peer), epoch, lead, time_text(since->second)));
    }
  }
}

void progress_checks::look_for_branches(duration time) {
  for (const auto& [epoch, peers] : at_epoch_) {
    peer_id first = 0;
    actors::state_id state;
    for (const auto& [peer, here_since] : peers) {
      const auto& theirs = peers_.at(peer).state;
      if (!too_long(time, here_since) || theirs.is_zero() || theirs == state) continue;
      if (state.is_zero()) {
        first = peer;
        state = theirs;
      } else if (complained_.insert(peer).second) {
        staleness_.violate(
            time,
            fmt::format(
                "{} and {} are in sync at epoch {} on different branches, since {} at least",
                options_.name_of(first), options_.name_of(peer), epoch, time_text(here_since)));
      }
    }
  }
}

void progress_checks::cut(duration time) {
  if (options_.longest_cut > options_.staleness_allowed / 4)
    all_hear_since_ = std::max(all_hear_since_, time + options_.longest_cut +
                                                    options_.longest_cut / 16); // actors::blacklist
}

void progress_checks::know(std::uint64_t epoch, const actors::state_id& state) {
  if (epoch + kept_epochs >= highest_) states_[epoch].insert(state);
}

void progress_checks::forget() {
  if (highest_ < kept_epochs) return;
  const std::uint64_t oldest = highest_ - kept_epochs;
  states_.erase(states_.begin(), states_.lower_bound(oldest));
  origins_.erase(origins_.begin(), origins_.lower_bound(oldest));
  results_.erase(results_.begin(), results_.lower_bound(oldest));
  meetings_.erase(meetings_.begin(), meetings_.lower_bound(oldest));
}

void progress_checks::phase_changed(duration time, peer_id peer,
                                    const actors::phase_changed& what) {
  advance(time);
  if (what.phase == peer_phase::gone) return left(time, peer);
  peer_state& of = peers_[peer];
  // In any other phase, the state is one that the peer gives up.
  const bool has_state = what.phase == peer_phase::computing || what.phase == peer_phase::averaging;
  if (!has_state || !of.judged) {
    // An attacker lies in its messages. Its own state exists, and others may adopt it.
    if (has_state) know(what.epoch, what.state);
    return set_in_sync(time, peer, of, false);
  }
  reach(time, peer, of, what.epoch, "computes");
  set_in_sync(time, peer, of, true);
  of.state = what.state;
  know(what.epoch, what.state);
}

void progress_checks::not_judged(duration time, peer_id peer) {
  advance(time);
  peer_state& of = peers_[peer];
  of.judged = false;
  set_in_sync(time, peer, of, false);
}

void progress_checks::contributed(duration time, peer_id peer, const actors::contributed& what) {
  advance(time);
  monotonic_.check();
  const peer_state& of = peers_[peer];
  if (what.epoch < of.epoch && !options_.has_experts) {
    monotonic_.violate(time, fmt::format("{} contributes to epoch {} after epoch {}",
                                         options_.name_of(peer), what.epoch, of.epoch));
  }
  if (!options_.one_branch || !what.takes || of.epoch != what.epoch || of.state.is_zero()) return;
  lineage_.check();
  const auto& first =
      meetings_[what.epoch].try_emplace(what.group, meeting{of.state, peer}).first->second;
  if (first.state != of.state)
    lineage_.violate(time, fmt::format("{} and {} contribute to group {} from different states",
                                       options_.name_of(first.peer), options_.name_of(peer),
                                       what.group.hex()));
}

void progress_checks::stepped(duration time, peer_id peer, const actors::stepped& what) {
  advance(time);
  peer_state& of = peers_[peer];
  // The peer's phase may have told this state already.
  const bool told = what.epoch == of.epoch && of.state == what.after;
  if (what.epoch == of.epoch && !told && !of.state.is_zero()) {
    monotonic_.violate(
        time, fmt::format("{} steps to epoch {}, where it is", options_.name_of(peer), what.epoch));
  }
  lineage_.check();
  if (!of.state.is_zero() && of.state != what.before && !told) {
    lineage_.violate(time, fmt::format("{} steps from state {}, but it was at {}",
                                       options_.name_of(peer), what.before.hex(), of.state.hex()));
  }
  const auto [made, new_state] =
      origins_[what.epoch].try_emplace(what.after, origin{what.before, what.group, peer});
  if (!new_state && (made->second.before != what.before || made->second.group != what.group)) {
    lineage_.violate(time, fmt::format("{} and {} reach state {} from different states or groups",
                                       options_.name_of(made->second.peer), options_.name_of(peer),
                                       what.after.hex()));
  }
  const auto [result, new_result] =
      results_[what.epoch].try_emplace({what.before, what.group}, what.after);
  if (!new_result && result->second != what.after) {
    lineage_.violate(time, fmt::format("{} makes state {} of group {}, where others made {}",
                                       options_.name_of(peer), what.after.hex(), what.group.hex(),
                                       result->second.hex()));
  }
  reach(time, peer, of, what.epoch, "steps");
  of.state = what.after;
  know(what.epoch, what.after);
}

void progress_checks::adopted(duration time, peer_id peer, const actors::adopted& what) {
  advance(time);
  peer_state& of = peers_[peer];
  if (what.of_step) {
    know(what.epoch, what.state);
  } else if (options_.view == observed_view::whole && !options_.donors_may_lie && of.judged &&
             what.epoch + kept_epochs >= highest_) {
    lineage_.check();
    const auto found = states_.find(what.epoch);
    if (found == states_.end() || !found->second.contains(what.state)) {
      lineage_.violate(time, fmt::format("{} adopts state {} of epoch {}, which nobody had",
                                         options_.name_of(peer), what.state.hex(), what.epoch));
    }
  }
  // A peer that goes over to another branch takes the newest state whose bits are certified, and
  // repeats the steps from there.
  reach(time, peer, of, what.epoch, "adopts a state", options_.one_branch || options_.has_stages);
  of.state = what.state;
}

void progress_checks::left(duration time, peer_id peer) {
  advance(time);
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  set_in_sync(time, peer, found->second, false);
  peers_.erase(found);
}

} // namespace shoal::scenarios
