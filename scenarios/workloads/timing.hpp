// Options of the workload 'timing': sizes and durations of a model, without its numbers.
#pragma once

#include "kernels/base/units.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>

namespace shoal::scenarios {

struct timing_options {
  std::uint64_t parameters = 1'000'000;
  std::uint64_t rows = 1;          ///< the parameters are a matrix of so many rows
  data_size sample_size{256};      ///< bytes streamed for one sample
  data_size activation_size{4096}; ///< bytes of one sample between two layers
  bool operator==(const timing_options&) const = default;
};

/// A workload of these sizes that computes nothing.
workload_choice timing_of(std::uint64_t parameters, std::uint64_t sample_bytes);

} // namespace shoal::scenarios
