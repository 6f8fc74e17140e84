// Observations of a peer in training: computed samples, steps, downloads, and phases.
#pragma once

#include "actors/ids.hpp"
#include "actors/observe.hpp"
#include "actors/reasons.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace shoal::actors {

/// A compute job ended; `loss_sum` is the sum of the samples' mean losses.
struct trained {
  static constexpr std::string_view observed_as = "trained";
  std::uint64_t epoch = 0;
  std::vector<sample_range> samples;
  double loss_sum = 0;
};

/// A peer's relation to the swarm changed.
enum class peer_phase : std::uint8_t { joining, computing, averaging, downloading, gone };
struct phase_changed {
  static constexpr std::string_view observed_as = "phase_changed";
  peer_phase phase = peer_phase::joining;
  std::uint64_t epoch = 0;
  state_id state;
};

/// A peer took an optimizer step: from one state to the next.
struct stepped {
  static constexpr std::string_view observed_as = "stepped";
  std::uint64_t epoch = 0; ///< the new epoch
  state_id before, after;
  group_id group;
};

/// With overlap: a peer computed the step from a round's result. The peer crosses over to the new
/// state later, unless it dies first. Other peers may download the step until then.
struct step_made {
  static constexpr std::string_view observed_as = "step_made";
  state_id before, after;
  group_id group;
};

/// A peer adopted a downloaded state.
struct adopted {
  static constexpr std::string_view observed_as = "adopted";
  std::uint64_t epoch = 0;
  state_id state;
  std::uint64_t bytes = 0;
  /// With overlap: the peer repeated a step, and may be the first one in that state.
  bool of_step = false;
  bool beside = false; ///< the peer computed meanwhile and keeps the result
  /// The peer also keeps what it computed before: its next contribution has all these samples.
  bool keeps = false;
};

/// The download of a state, or of a missed step, ended. For a resumed download the numbers count
/// only new chunks.
struct download_ended {
  static constexpr std::string_view observed_as = "download_ended";
  bool step = false;
  /// The epoch of the state, or the epoch after the step; 0 if no donor offered the object.
  std::uint64_t epoch = 0;
  actors::reason reason = reason::none;
  std::uint64_t bytes = 0;    ///< bytes of the chunks that arrived
  std::uint64_t rejected = 0; ///< bytes of chunks with a wrong hash
  std::uint32_t donors = 0;   ///< the number of donors that sent at least one chunk
};

} // namespace shoal::actors
