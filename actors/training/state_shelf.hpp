// What a peer keeps for those who download: its last few states, the steps between them, and for as
// long as somebody is at it, older ones. A plain state machine; the peer that owns it says what
// time it is.
//
// Why a joiner comes to an end (hivemind#443): with S the bytes of a gradient, D those of a state,
// T the duration of an epoch, r the
//   joiner's rate. It downloads one state of D bytes, which is kept for it while it takes them, in
//   time D / r, and then the steps that it has missed meanwhile, S bytes each, which are kept with
//   it. Each step takes S / r to fetch and is overtaken every T. So it has caught up after D / (r -
//   S / T) in all if S / r < T; at no time are more than D / (r T) + 1 steps missing, 4 with Adam
//   (D = 3 S). If S / r
//   >= T its line does not bring what a round of averaging brings its members, and it cannot take
//   part whatever it does: then the missing steps become more than `steps`, and it is told.
//   (actors/training/state_catch_up.hpp says what it does then.)
// Memory: `recent` states and steps always; at most `pinned` states and `steps` steps more. A lease
// ends `lease` after its owner was
//   heard of last; there are at most `leases`.
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

class state_shelf {
public:
  struct limits {
    std::size_t recent = 3;
    std::size_t pinned = 4;
    std::size_t steps = 16;
    std::size_t leases = 64;
    std::uint64_t uploads = 8; ///< who may ask for chunks at the same time
    duration lease = std::chrono::minutes(1);
  };

  explicit state_shelf(limits bounds) : bounds_(bounds) {}

  /// The state that was ours until now, and the step that we took from it, if others can repeat it.
  void put(state_ptr before, std::optional<taken_step> step, duration now);

  /// `object` (zero: `current`), cut into chunks; none if we do not have it. `current` is our state
  /// now, which is not on the shelf.
  std::shared_ptr<const shared_object> find(const id128& object, const state_ptr& current,
                                            std::uint64_t chunk_bytes);

  /// `who` wants `object`, and is kept it for; to ask for chunks it needs one of `uploads` places.
  /// False: there is none.
  bool admit(const caf::actor& who, const shared_object& object, bool reserve, duration now);
  /// It is still there. False: it is unknown here.
  bool renew(const caf::actor& who, const id128& object, duration now);
  /// It needs no place any more, but may want what follows.
  void release(const caf::actor& who);
  void clear();

  std::uint64_t uploads(duration now);

private:
  struct entry {
    state_ptr state; // null if only the step is kept
    state_id id;
    std::uint64_t epoch = 0;
    std::optional<taken_step> step;
  };
  struct lease {
    caf::actor_addr who; // weak: it may be gone
    id128 object;
    std::uint64_t epoch = 0; // the oldest state whose step its owner may want
    bool uploading = false;
    duration expires{};
  };

  lease* find_lease(const caf::actor& who);
  void expire(duration now);
  void trim(duration now);

  limits bounds_;
  std::deque<entry> entries_; // as they were ours
  std::vector<lease> leases_; // in the order in which they began
  std::map<id128, std::shared_ptr<const shared_object>> cut_;
};

} // namespace shoal::actors
