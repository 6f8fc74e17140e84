// The records of a pipeline in the DHT: those of the peers of each stage, a summary of each stage,
// and those of the trainers.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/payload.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace shoal::actors {

/// A peer of a stage that has that stage's state.
struct stage_record {
  std::uint32_t stage = 0;
  std::uint64_t epoch = 0;
  state_id state;
  std::uint64_t counted = 0; ///< samples times hops in the peer's gradient
  std::uint64_t busy = 0;    ///< parts in a million of its time in which the peer computes
  bool moves = false;        ///< the peer is about to leave the stage
  id128 content;             ///< stage_content() of the state
  bool operator==(const stage_record&) const = default;

  payload pack() const;
  /// Empty for bytes that are no such record.
  static std::optional<stage_record> unpack(const payload& from);
};

/// A stage as one of its peers sees it. So a peer that wants to know the loads reads a record for
/// each stage, and not one for each peer.
struct stage_summary {
  std::uint32_t stage = 0;
  std::uint64_t epoch = 0; ///< the highest one of its peers
  std::uint64_t peers = 0;
  std::uint64_t busy = 0; ///< the mean of its peers
  bool operator==(const stage_summary&) const = default;

  payload pack() const;
  static std::optional<stage_summary> unpack(const payload& from);
};

/// `closed` of a trainer that waits for its first batch.
inline constexpr std::uint64_t no_batch_yet = ~std::uint64_t{0};
/// A record names this many open stages at most. With more, the batch is open for all stages.
inline constexpr std::size_t most_open_stages = 256;

/// A trainer. It has computed its part of all batches before `closed`. Its part of the last of them
/// had `samples` samples. `version` ascends with each change. The stages in `open` have lost a peer
/// with gradients of the last batch, so that batch is not closed for them. The others may step.
struct trainer_record {
  std::uint64_t closed = 0, samples = 0, version = 0;
  std::set<std::uint32_t> open;
  bool operator==(const trainer_record&) const = default;

  /// `closed` as far as that stage is concerned.
  std::uint64_t closed_for(std::uint32_t stage) const {
    return closed != no_batch_yet && closed > 0 && open.contains(stage) ? closed - 1 : closed;
  }

  payload pack() const;
  static std::optional<trainer_record> unpack(const payload& from);
};

inline std::string stage_key(std::string_view run, std::uint32_t stage) {
  return "pipeline." + std::string{run} + ".stage." + std::to_string(stage);
}
inline std::string summaries_key(std::string_view run) {
  return "pipeline." + std::string{run} + ".stages";
}
inline std::string trainers_key(std::string_view run) {
  return "pipeline." + std::string{run} + ".trainers";
}

} // namespace shoal::actors
