// Compares the progress of peers. Epochs only rise, no peer that believes to be in sync stays
// behind, and a state id has one origin (docs/design.md, sections 4 and 5).
#pragma once

#include "actors/ids.hpp"
#include "scenarios/observe/invariant.hpp"
#include "scenarios/observe/rounds.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

namespace shoal::actors {
struct adopted;
struct contributed;
struct phase_changed;
struct stepped;
} // namespace shoal::actors

namespace shoal::scenarios {

struct progress_options {
  std::uint64_t max_epoch_difference = 1;
  /// How long a peer may be too far behind before it has to notice. A peer learns of the others'
  /// progress from their records and from a round that it cannot join. So this time includes a
  /// round's time-out.
  duration staleness_allowed = std::chrono::seconds(150);
  /// The longest time for which a fault keeps hosts from hearing of others. If this is a large part
  /// of staleness_allowed, staleness_allowed counts from the end of the last such fault.
  duration longest_cut{};
  bool one_branch = false; ///< all peers in sync at an epoch have the same state
  /// A peer that moves to another stage of the model may adopt an older state there.
  bool has_stages = false;
  /// A single donor can give a joiner a false state, and the swarm has an attacker
  /// (docs/security.md).
  bool donors_may_lie = false;
  /// Trainers of experts reach epochs while a round of theirs runs. Their round is of the epoch in
  /// which it began.
  bool has_experts = false;
  std::function<std::string(actors::peer_id)> name_of;
  observed_view view = observed_view::whole;
};

/// `epoch_monotonic`: no peer's epoch goes down, unless it adopts a state of another branch, or of
/// another stage of the model. A step makes it rise.
///
/// `staleness`: a peer is in sync while it is alive and its last phase is computing or averaging.
/// The leading epoch is the highest one of the peers in sync. A peer violates the rule if it is in
/// sync and more than max_epoch_difference behind for longer than staleness_allowed. The time
/// counts from when the peer came to its epoch, if that is later. Each peer violates the rule at
/// most once for each epoch. With one_branch, the same limit holds for two peers in sync with
/// different states at one epoch. One of the peers has to go over to the branch of the other peer.
/// The check runs every eighth of staleness_allowed, until the run ends.
///
/// `state_lineage`: a state that a step made has one (before, group), and one (before, group) makes
/// one state. With one_branch, all contributors to a group start from one state. A step starts from
/// the state that the peer is known to have. An adopted state is one that some peer had, unless
/// donors_may_lie. The states of the last 64 epochs are remembered.
///
/// In local view no peer is compared with others: neither `staleness` nor the origin of an adopted
/// state is judged.
class progress_checks {
public:
  progress_checks(progress_options options, invariant& monotonic, invariant& staleness,
                  invariant& lineage);

  void phase_changed(duration time, actors::peer_id peer, const actors::phase_changed& what);
  void contributed(duration time, actors::peer_id peer, const actors::contributed& what);
  void stepped(duration time, actors::peer_id peer, const actors::stepped& what);
  void adopted(duration time, actors::peer_id peer, const actors::adopted& what);
  void left(duration time, actors::peer_id peer);
  /// The peer is an attacker, or the others have banned it. It need not keep up, and nobody waits
  /// for it.
  void not_judged(duration time, actors::peer_id peer);
  /// A fault begins that keeps hosts from hearing of others.
  void cut(duration time);
  /// The run ends: peers are told to leave. They follow nobody any more, so `staleness` is judged a
  /// last time.
  void ending(duration time) {
    look_for_stragglers(time);
    ends_ = true;
  }
  /// The time is now `time`.
  void advance(duration time) {
    if (!ends_ && time >= next_look_) look_for_stragglers(time);
  }

  std::size_t in_sync() const noexcept { return in_sync_; }
  /// Highest epoch that any peer has been at.
  std::uint64_t highest_epoch() const noexcept { return highest_; }

private:
  struct peer_state {
    std::uint64_t epoch = 0;
    bool in_sync = false;
    bool judged = true;
    actors::state_id state;
  };
  struct origin {
    actors::state_id before;
    actors::group_id group;
    actors::peer_id peer = 0;
  };

  struct meeting {
    actors::state_id state;
    actors::peer_id peer = 0;
  };

  void reach(duration time, actors::peer_id peer, peer_state& of, std::uint64_t epoch,
             std::string_view doing, bool may_go_back = false);
  void set_in_sync(duration time, actors::peer_id peer, peer_state& of, bool in_sync);
  void look_for_stragglers(duration time);
  void look_for_branches(duration time);
  /// Whether a condition that should have ended has lasted too long since `since`.
  bool too_long(duration time, duration since) const {
    return time - std::max(since, all_hear_since_) > options_.staleness_allowed;
  }
  void place(duration time, actors::peer_id peer, std::uint64_t epoch);
  void remove(actors::peer_id peer, std::uint64_t epoch);
  void know(std::uint64_t epoch, const actors::state_id& state);
  void forget();

  progress_options options_;
  invariant& monotonic_;
  invariant& staleness_;
  invariant& lineage_;
  std::unordered_map<actors::peer_id, peer_state> peers_; // never iterated
  // peers in sync, and since when each is at the epoch
  std::map<std::uint64_t, std::map<actors::peer_id, duration>> at_epoch_;
  std::map<std::uint64_t, duration> reached_; // since when a peer in sync is at the epoch
  std::set<actors::peer_id> complained_;
  duration next_look_{}, all_hear_since_{};
  bool ends_ = false;
  std::size_t in_sync_ = 0;
  std::uint64_t highest_ = 0;
  std::map<std::uint64_t, std::set<actors::state_id>> states_; // by epoch
  // the state of the group's first contributor
  std::map<std::uint64_t, std::map<actors::group_id, meeting>> meetings_;
  std::map<std::uint64_t, std::map<actors::state_id, origin>> origins_;
  std::map<std::uint64_t, std::map<std::pair<actors::state_id, actors::group_id>, actors::state_id>>
      results_;
};

} // namespace shoal::scenarios
