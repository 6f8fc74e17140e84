// The records of a pipeline in the DHT: those of the peers of each stage, and those of the
// trainers.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/payload.hpp"

#include <cstdint>
#include <optional>
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
  bool operator==(const stage_record&) const = default;

  payload pack() const;
  /// Empty for bytes that are no such record.
  static std::optional<stage_record> unpack(const payload& from);
};

/// A trainer. It has computed its part of all batches before `closed`. Its part of the last of them
/// had `samples` samples.
struct trainer_record {
  std::uint64_t closed = 0, samples = 0;
  bool operator==(const trainer_record&) const = default;

  payload pack() const;
  static std::optional<trainer_record> unpack(const payload& from);
};

inline std::string stage_key(std::string_view run, std::uint32_t stage) {
  return "pipeline." + std::string{run} + ".stage." + std::to_string(stage);
}
inline std::string trainers_key(std::string_view run) {
  return "pipeline." + std::string{run} + ".trainers";
}

} // namespace shoal::actors
