// A residual network over the places of a square grid, in plain loops, forward and backward.
//   first: a convolution over `reach` x `reach` places (1 or 3) from `inputs` to `hidden` channels
//   block, `blocks` times: x + W2 relu(conv 3 x 3 of relu(x))
//   last: W relu(x) to `outputs` channels
// Places outside of the grid are zero. Activations are [pictures * side * side, channels].
// Source: van den Oord et al., "Neural Discrete Representation Learning", arXiv:1711.00937, section
// 4.1, whose strided convolutions are the division into patches here.
#pragma once

#include "kernels/base/rng.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace shoal::learn {

struct grid_shape {
  std::size_t side = 0, reach = 1, inputs = 0, hidden = 0, blocks = 0, outputs = 0;
  std::size_t places() const noexcept { return side * side; }
  /// Weights and biases.
  std::size_t parameters() const noexcept {
    return (reach * reach * inputs + 1) * hidden + blocks * (10 * hidden + 2) * hidden +
           (hidden + 1) * outputs;
  }
};

/// The values of a forward pass that its backward pass needs.
struct grid_pass {
  std::vector<std::vector<float>> inputs; ///< each layer reads these, after relu
};

/// Thread safety: immutable.
class grid_network {
public:
  /// Requires: sizes above 0, but `blocks` may be 0; reach 1 or 3.
  explicit grid_network(const grid_shape& shape);

  std::size_t parameter_count() const noexcept { return parameter_count_; }
  /// Weights and biases within 1 / sqrt(inputs of the layer) of 0. The last layer of each block is
  /// zero, so that a block begins as the identity.
  void initialize(rng& random, std::span<float> parameters) const;

  /// Requires: x of whole pictures. `kept` may be null.
  std::vector<float> forward(std::span<const float> parameters, std::span<const float> x,
                             grid_pass* kept = nullptr) const;
  /// Adds the gradient of the parameters, and returns that of x. Requires: `kept` of forward().
  std::vector<float> backward(std::span<const float> parameters, const grid_pass& kept,
                              std::span<const float> gradient_out,
                              std::span<float> gradient_sum) const;

private:
  /// Weights [reach * reach * inputs, outputs], and behind them a bias of each output.
  struct layer {
    std::size_t offset = 0, reach = 1, inputs = 0, outputs = 0;
    std::size_t weights() const noexcept { return reach * reach * inputs * outputs; }
  };
  std::vector<float> apply(const layer& which, std::span<const float> parameters,
                           std::span<const float> x) const;
  std::vector<float> apply_back(const layer& which, std::span<const float> parameters,
                                std::span<const float> x, std::span<const float> gradient_out,
                                std::span<float> gradient_sum) const;

  grid_shape shape_;
  std::vector<layer> layers_; ///< the first, two of each block, the last
  std::size_t parameter_count_ = 0;
};

} // namespace shoal::learn
