// Where peers are relative to each other: epochs only rise, nobody who believes to be in sync stays
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
  /// How long a peer may be further behind before it has to know. It learns of the others from
  /// their records and from a round that it cannot join, so a round's time-out is part of it.
  duration staleness_allowed = std::chrono::seconds(150);
  /// The longest time for which a fault keeps hosts from hearing of others. If it is no small part
  /// of what is allowed, that counts only from when the last such fault is over.
  duration longest_cut{};
  bool one_branch = false; ///< who is in sync at an epoch has the state that all others there have
  std::function<std::string(actors::peer_id)> name_of;
  observed_view view = observed_view::whole;
};

/// `epoch_monotonic`: no peer's epoch goes down; a step makes it rise.
/// `staleness`: a peer is in sync while its last phase is computing or averaging and it is alive.
/// The leading epoch is the highest of the peers in sync. A peer in sync whose epoch has been more
/// than max_epoch_difference below it, and who has been there itself, for more than
/// staleness_allowed violates, once for each epoch. With one_branch so do two peers in sync that
/// have been at one epoch with different states for that long: one of them should have gone over to
/// the other one's branch. Looked at every eighth of staleness_allowed. `state_lineage`: a state
/// that a step made has one (before, group), and one (before, group) makes one state; with
/// one_branch who contributes to a group does so from one state; a step starts from the state that
/// the peer is known to have; an adopted state is one that somebody had. In local view nobody is
/// compared with others: `staleness` is not judged, nor who had an adopted state. States of the
/// last 64 epochs are remembered.
class progress_checks {
public:
  progress_checks(progress_options options, invariant& monotonic, invariant& staleness,
                  invariant& lineage);

  void phase_changed(duration time, actors::peer_id peer, const actors::phase_changed& what);
  void contributed(duration time, actors::peer_id peer, const actors::contributed& what);
  void stepped(duration time, actors::peer_id peer, const actors::stepped& what);
  void adopted(duration time, actors::peer_id peer, const actors::adopted& what);
  void left(duration time, actors::peer_id peer);
  /// A fault begins that keeps hosts from hearing of others.
  void cut(duration time);
  /// Time has come to `time`.
  void advance(duration time) {
    if (time >= next_look_) look_for_stragglers(time);
  }

  std::size_t in_sync() const noexcept { return in_sync_; }
  /// Highest epoch that any peer has been at.
  std::uint64_t highest_epoch() const noexcept { return highest_; }

private:
  struct peer_state {
    std::uint64_t epoch = 0;
    bool in_sync = false;
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
             std::string_view doing);
  void set_in_sync(duration time, actors::peer_id peer, peer_state& of, bool in_sync);
  void look_for_stragglers(duration time);
  void look_for_branches(duration time);
  /// Something that should have ended has been so since then.
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
  std::map<std::uint64_t, std::map<actors::peer_id, duration>>
      at_epoch_;                              // peers in sync, since when
  std::map<std::uint64_t, duration> reached_; // since when somebody in sync is there
  std::set<actors::peer_id> complained_;
  duration next_look_{}, all_hear_since_{};
  std::size_t in_sync_ = 0;
  std::uint64_t highest_ = 0;
  std::map<std::uint64_t, std::set<actors::state_id>> states_; // by epoch
  std::map<std::uint64_t, std::map<actors::group_id, meeting>>
      meetings_; // where the first contributor was
  std::map<std::uint64_t, std::map<actors::state_id, origin>> origins_;
  std::map<std::uint64_t, std::map<std::pair<actors::state_id, actors::group_id>, actors::state_id>>
      results_;
};

} // namespace shoal::scenarios
