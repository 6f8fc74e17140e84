// Layers of a model that other machines compute, for a program that trains at this one.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/layered_model.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

/// Thread safety: one call at a time.
class remote_layers {
public:
  virtual ~remote_layers() = default;

  /// The number of layers, and of floats in a token's activations.
  virtual std::int64_t layers() const noexcept = 0;
  virtual std::size_t width() const noexcept = 0;

  struct passed {
    std::uint64_t pass = 0; ///< the name of the pass, for backward()
    std::vector<float> values;
  };
  /// The output [samples, time, width] of `layers`. `prompts` [layers, length, width] are added to
  /// the first tokens of each sequence before each layer; empty: none. Waits for the output.
  /// Errors: as layered_model::forward(), or the pass failed at the servers.
  virtual result<passed> forward(layer_range layers, pass_shape shape,
                                 std::span<const float> activations,
                                 std::span<const float> prompts) = 0;
  struct gradients {
    std::vector<float> activations, prompts;
  };
  /// The gradients with respect to the inputs of a pass, from the one with respect to its output.
  /// The pass is over then. Errors: no such pass, a gradient of another size.
  virtual result<gradients> backward(std::uint64_t pass, std::span<const float> gradient) = 0;
  /// The pass needs no gradient.
  virtual void forget(std::uint64_t pass) = 0;
};

} // namespace shoal::learn
