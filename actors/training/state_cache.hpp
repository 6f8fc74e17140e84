// The states and steps that a peer keeps for downloads: its last few states, and the steps between
// them. Older ones stay while a download needs them. A plain state machine; its owner passes the
// time.
//
// Why a joiner catches up (hivemind#443): let S be the bytes of a gradient and D those of a state.
// Let T be the duration of an epoch, and r the joiner's rate. The joiner downloads one state in
// time D / r. Its donors keep that state, and the steps after it, of S bytes each. A step takes S /
// r to download, and a new one arrives every T. So if S / r < T, the joiner has caught up after D /
// (r - S / T). It is never more than D / (r T) + 1 steps behind: 4 with Adam (D = 3 S). If S / r >=
// T, its line cannot carry what a round of averaging brings its members, so it cannot take part.
// The missing steps then exceed `steps`, and the donor refuses (actors/training/state_catch_up.hpp
// says how the joiner reacts).
//
// Memory: `recent` states and steps, and at most `pinned` more states and `steps` more steps. A
// lease ends when its owner was silent for `lease`. There are at most `leases` leases.
#pragma once

#include "actors/training/state_object.hpp"
#include "kernels/base/units.hpp"

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace shoal::actors {

class state_cache {
public:
  struct limits {
    std::size_t recent = 3;
    std::size_t pinned = 4;
    std::size_t steps = 16;
    std::size_t leases = 64;
    /// Concurrent downloads that may ask for chunks. One that asks for none in the time of a lease
    /// leaves its place.
    std::uint64_t uploads = 8;
    duration lease = std::chrono::minutes(1);
  };

  explicit state_cache(limits bounds) : bounds_(bounds) {}

  /// Keeps the peer's former state, and the step that was taken from it, if other peers can repeat
  /// it.
  void put(state_ptr before, std::optional<taken_step> step, duration now);

  /// `object` (zero: `current`), cut into chunks; null if it is not kept. `current` is the peer's
  /// present state, which the cache does not hold.
  std::shared_ptr<const shared_object> find(const id128& object, const state_ptr& current,
                                            std::uint64_t chunk_bytes);

  /// The state of this id, if it is kept; else null.
  state_ptr state_of(const state_id& id) const;

  /// Grants `who`, an actor of `member`, a lease on `object`. A lease that may ask for chunks needs
  /// one of `uploads` places. False if there is no place. A member has one lease: a new one ends
  /// the former, so one host with many actors takes one place. A zero member is not told apart.
  bool admit(const caf::actor& who, const member_id& member, const shared_object& object,
             bool reserve, duration now);
  /// The owner of a lease has sent a message. False if there is no such lease.
  bool renew(const caf::actor& who, const id128& object, duration now);
  /// The owner of a lease needs no chunks any more, but may want later steps.
  void release(const caf::actor& who);
  void clear();

  std::uint64_t uploads(duration now);

private:
  struct entry {
    state_ptr state; // null if only the step is kept
    state_id id;
    std::uint64_t epoch = 0;
    std::optional<taken_step> step;

    bool is_state(const id128& object) const { return state && id == object; }
    bool is_step(const id128& object) const { return step && step_object(id) == object; }
  };
  struct lease {
    caf::actor_addr who; // weak: the peer may be gone
    member_id member;
    id128 object;
    std::uint64_t epoch = 0;  // the oldest state whose step the owner may want
    duration uploads_until{}; // the place among the uploads
    duration expires{};
  };

  /// The latest entry with the object; null if there is none. After the download of another branch,
  /// the same state can be there twice.
  const entry* latest(const id128& object) const;
  bool leased(const id128& object) const;
  lease* find_lease(const caf::actor& who);
  void expire(duration now);
  void trim(duration now);

  limits bounds_;
  std::deque<entry> entries_; // in the order in which they were the peer's state
  std::vector<lease> leases_; // in order of their begin
  std::map<id128, std::shared_ptr<const shared_object>> cut_;
};

} // namespace shoal::actors
