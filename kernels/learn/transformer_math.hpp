// The border between Shoal and libtorch. To load libtorch takes most of a second, which commands and swarms without a
// transformer need not wait for, so all that calls it is a module (torch_module.cpp) that is loaded when it is needed.
#pragma once

#include "kernels/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

/// Samples whose activations are in memory at once; part of the definition of the result's bits.
inline constexpr std::size_t transformer_chunk = 16;

struct transformer_shape {
  kernels::transformer_config config;
  bool checkpoint = false;
  std::vector<kernels::tensor_slot> layout;
};

/// The functions of `transformer`, which says what they do and checks sizes.
class transformer_math {
 public:
  virtual ~transformer_math() = default;
  virtual double accumulate_gradient(std::span<const float> parameters, std::span<const std::uint8_t> tokens, std::size_t samples,
                                     std::span<float> gradient_sum) const = 0;
  virtual double mean_loss(std::span<const float> parameters, std::span<const std::uint8_t> tokens, std::size_t samples) const = 0;
  virtual std::vector<float> next_logits(std::span<const float> parameters, std::span<const std::uint8_t> prompt) const = 0;
};

}  // namespace shoal::learn

// What the module exports; found by name.
extern "C" {
/// The caller owns what is returned.
shoal::learn::transformer_math* shoal_make_transformer_math(const shoal::learn::transformer_shape& shape);
void shoal_use_one_thread();
}
