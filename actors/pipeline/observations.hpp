// Observations of a training pipeline.
#pragma once

#include "actors/ids.hpp"
#include "actors/pipeline/gradient_book.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

/// A gradient has counted at a peer of a stage.
struct gradient_counted {
  static constexpr std::string_view observed_as = "gradient_counted";
  std::uint64_t epoch = 0;
  std::uint32_t stage = 0, hop = 0;
  pass_id pass;
  std::uint64_t samples = 0;
  std::string logged_fields() const;
};

/// A peer of a stage has made a step. `own`: the samples times hops that it gave to the round.
struct stage_stepped {
  static constexpr std::string_view observed_as = "stage_stepped";
  std::uint32_t stage = 0;
  std::uint64_t epoch = 0; ///< the new one
  state_id before, after;
  group_id group;
  std::uint64_t own = 0;
  std::uint64_t members = 0;
  std::string logged_fields() const;
};

/// A peer has a downloaded state of a stage.
struct stage_joined {
  static constexpr std::string_view observed_as = "stage_joined";
  std::uint32_t stage = 0;
  std::uint64_t epoch = 0, bytes = 0;
  std::string logged_fields() const;
};

/// A peer leaves a stage for another one.
struct stage_left {
  static constexpr std::string_view observed_as = "stage_left";
  std::uint32_t from = 0, to = 0;
  std::string logged_fields() const;
};

/// A peer has thrown away gradients that had counted, because its stage went on without it.
struct gradients_dropped {
  static constexpr std::string_view observed_as = "gradients_dropped";
  std::uint32_t stage = 0;
  std::uint64_t epoch = 0, samples = 0;
  std::string logged_fields() const;
};

/// A trainer has computed its part of a batch.
struct batch_trained {
  static constexpr std::string_view observed_as = "batch_trained";
  std::uint64_t epoch = 0, samples = 0;
  double loss_sum = 0;
  std::uint64_t repeated = 0; ///< hops that were computed again because their peer was lost
  bool dropped = false;       ///< a stage had gone on before the part was done
  std::string logged_fields() const;
};

} // namespace shoal::actors
