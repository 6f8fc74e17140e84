// Options of the workload 'dalle': a decoder that learns to draw pictures for captions.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/dalle_layout.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct dalle_options {
  std::uint64_t layers = 9, heads = 4, dim = 128, groups = 4;
  std::uint64_t text_length = 16, vocabulary = 1000;
  std::uint64_t codes = 512, side = 8;
  bool reversible = true;
  std::uint64_t held_out_samples = 64;
  std::vector<std::string> show;
  bool operator==(const dalle_options&) const = default;
};

learn::dalle_config model_of(const dalle_options& from);

} // namespace shoal::scenarios
