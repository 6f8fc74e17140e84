// The data of a swarm of experts: images from files, made-up images, or a text.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/mixture_network.hpp"
#include "scenarios/programs/experts.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace shoal::scenarios {

struct expert_data {
  std::shared_ptr<const learn::network_ends> ends;
  /// The samples of a trainer's step: a pure function of the seed and its arguments.
  std::function<std::vector<std::byte>(std::size_t trainer, std::uint64_t step)> samples;
  std::vector<std::byte> held_out;
  bool counts_right = true; ///< held-out measurements have an accuracy
};

/// The data that the options name. Errors: files that cannot be read or have another form than the
/// options say, a text that is too short, libtorch cannot be loaded.
result<expert_data> expert_data_of(const experts_options& what, std::uint64_t seed);

} // namespace shoal::scenarios
