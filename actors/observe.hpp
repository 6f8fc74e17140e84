// What actors tell the observers outside them: never a message, never an influence on the run.
// Logs, metrics and the invariants of DESIGN section 5 are made from these and from nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/ids.hpp"
#include "actors/reasons.hpp"
#include "kernels/base/payload.hpp"

namespace shoal::actors {

/// A compute job of `samples` samples ended; `loss_sum` is the sum of the samples' mean losses.
struct trained {
  std::uint64_t epoch = 0;
  std::vector<sample_range> samples;
  double loss_sum = 0;
};

/// A peer's relation to the swarm changed.
enum class peer_phase : std::uint8_t { joining, computing, averaging, downloading, gone };
struct phase_changed {
  peer_phase phase = peer_phase::joining;
  std::uint64_t epoch = 0;
  state_id state;
};

/// A member enters a round with this contribution (shared memory, not copied).
struct contributed {
  group_id group;
  std::uint64_t epoch = 0;
  std::uint32_t member = 0;        ///< index in the group
  std::uint32_t members = 0;
  std::uint64_t weight = 0;
  std::vector<sample_range> samples;
  payload values;
  bool takes = true;               ///< false: it reduces for the others and wants no result
  bool first_of_two = false;       ///< another round of the same members follows, and says whose samples are in the result
};

/// A part as one member holds it after the round, or as much of it as has the same senders.
struct part_outcome {
  std::uint64_t begin = 0, end = 0;      ///< value indices
  std::vector<std::uint32_t> senders;    ///< members whose data is in it, ascending
  std::uint64_t weight = 0;              ///< the denominator that was used
};

/// A member's round ended. `values` is the mean, empty unless ok or partial.
struct round_ended {
  group_id group;                  ///< zero if no group formed
  std::uint64_t epoch = 0;
  std::uint32_t member = 0;
  std::uint32_t members = 0;
  actors::outcome outcome = outcome::failed;
  actors::reason reason = reason::none;
  std::vector<part_outcome> parts;
  payload values;
  std::uint64_t started_ns = 0;    ///< when the group began (virtual)
};

/// A peer took an optimizer step: from one state to the next.
struct stepped {
  std::uint64_t epoch = 0;         ///< the new epoch
  state_id before, after;
  group_id group;
};

/// With overlap: the step that follows from a round's result is made. Whoever made it goes over to it later, or dies before; others may
/// have it then.
struct step_made {
  state_id before, after;
  group_id group;
};

/// A peer adopted a downloaded state.
struct adopted {
  std::uint64_t epoch = 0;
  state_id state;
  std::uint64_t bytes = 0;
  bool of_step = false;            ///< with overlap: it repeated a step, and may be the first one who goes over to it
  bool beside = false;             ///< while it computed: what it has computed is kept
};

/// A download of a state, or of a step that was missed, ended. Of one that is resumed this says what was new.
struct download_ended {
  bool step = false;
  std::uint64_t epoch = 0;         ///< of the state; of a step the one after it; 0: nobody offered it
  actors::reason reason = reason::none;
  std::uint64_t bytes = 0;         ///< of chunks that came
  std::uint64_t rejected = 0;      ///< of these: not what their hash said
  std::uint32_t donors = 0;        ///< who sent at least one
};

/// The data shard moved samples from one state to another (DESIGN section 4, data).
enum class sample_state : std::uint8_t { leased, committed, returned, partial };
struct samples_moved {
  sample_state to = sample_state::leased;
  peer_id peer = 0;
  std::uint64_t epoch = 0;
  group_id group;
  std::vector<sample_range> samples;
  std::uint32_t parts_included = 0, parts_total = 0;
};

/// Samples that may have been used twice, or whose branch lost: reported, never silent.
struct samples_reported {
  std::string why;
  peer_id peer = 0;
  std::uint64_t epoch = 0;
  std::vector<sample_range> samples;
};

/// What a peer believes now about how others can reach it.
enum class reach : std::uint8_t { unknown, open, cone, symmetric, outbound_only };
inline constexpr std::array<std::string_view, 5> reach_names{"unknown", "open", "cone", "symmetric", "outbound_only"};
constexpr std::string_view to_string(reach value) { return reach_names[static_cast<std::size_t>(value)]; }
struct reach_learned {
  actors::reach reach = actors::reach::unknown;
};

/// An actor got a message that no correct peer sends; it was dropped and counted.
struct misbehaved {
  peer_id culprit = 0;
  std::string why;
};

/// A DHT node answered a reader with records of which the first expires then; the time is what the node takes it to be.
struct records_given {
  std::int64_t expires_utc_ns = 0;
  std::int64_t utc_ns = 0;
};

using observation = std::variant<trained, phase_changed, contributed, round_ended, stepped, step_made, adopted,
                                 download_ended, samples_moved, samples_reported, misbehaved, reach_learned, records_given>;

}  // namespace shoal::actors
