// The shape of the transformer, and the place of each of its tensors in the flat parameter vector.
// Averaging, optimizers and checkpoints only move parameters, and need no more than this. The
// header includes no torch.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shoal::kernels {

/// A decoder-only transformer over tokens: bytes, with a vocabulary of 256.
struct transformer_config {
  std::int64_t layers = 2;
  std::int64_t heads = 4;
  std::int64_t dim = 128;        ///< width of the residual stream; a multiple of 2 * heads
  std::int64_t context = 64;     ///< tokens before a prediction that it may use
  std::int64_t vocabulary = 256; ///< number of tokens; at most 2^31
  bool operator==(const transformer_config&) const = default;
};

/// Errors: a size that is not positive or larger than any that fits in memory, a width that heads
/// do not divide.
result<void> validate(const transformer_config& config);

/// One tensor of a flat parameter vector: elements [offset, offset + size()), row-major.
struct tensor_slot {
  std::string name;
  std::size_t offset = 0;
  std::vector<std::int64_t> shape;
  std::size_t size() const noexcept;
};

/// The offset at which the last tensor ends; 0 for no tensors.
std::size_t end_of(const std::vector<tensor_slot>& tensors) noexcept;

/// The tensors in the order in which they lie in the flat vector, without gaps:
///   embedding [vocabulary, dim] (also the output matrix), then for each layer attention_norm
///   [dim], attention_qkv [3 dim, dim], attention_out [dim, dim], mlp_norm [dim], mlp_up [4 dim,
///   dim], mlp_down [dim, 4 dim]; last final_norm [dim].
/// Requires: validate(config).
std::vector<tensor_slot> layout_of(const transformer_config& config);

/// vocabulary * dim + layers * (12 dim^2 + 2 dim) + dim. Requires: validate(config).
std::size_t parameter_count(const transformer_config& config);

/// Gains are 1. Matrices are normal with deviation 1 / sqrt(2 * inputs) (embedding: 0.02). Matrices
/// that write to the residual stream are smaller by sqrt(2 * layers). Equal seeds give equal bits.
/// Source: Radford et al., "Language models are unsupervised multitask learners" (2019), section
/// 2.3 (residual scaling).
std::vector<float> initial_parameters(const transformer_config& config, std::uint64_t seed);

} // namespace shoal::kernels
