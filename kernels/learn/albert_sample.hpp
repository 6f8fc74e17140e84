// A sample of ALBERT's pre-training as bytes, and samples as a padded batch. A sample has the
// tokens after masking, a label for each masked token, and whether its two segments are swapped:
//   tokens n u16, tokens of the first segment u16, swapped u8, three zeros;
//   tokens [length], labels [length], each token_bytes(vocabulary + 1) wide.
// A label is the token that the model should predict, or `vocabulary` where there is none. All
// values after the first n tokens are 0.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/albert_math.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

struct albert_sample {
  std::vector<token_id> tokens{};
  std::vector<token_id> labels{}; ///< as many as tokens; no_label: none
  std::size_t first = 0;          ///< tokens of the first segment, with its special tokens
  /// Whether the second segment came first in the text, or the sample's class. no_label: none.
  token_id order = 0;
  static constexpr token_id no_label = -1;
};

/// The form of a model's samples.
struct albert_format {
  std::int64_t vocabulary = 0; ///< tokens
  std::int64_t length = 0;     ///< the longest sample in tokens; at most 65535
  std::size_t bytes() const noexcept;

  /// Whether `samples` are whole samples. Errors: which sample is wrong, and how.
  result<void> check(std::span<const std::byte> samples) const;
  /// Requires: out.size() == bytes(), a sample of at most `length` tokens with tokens and labels in
  /// the vocabulary, and an order of 0 or 1.
  void write(const albert_sample& from, std::span<std::byte> out) const;
  /// Requires: check(from), from.size() == bytes().
  albert_sample read(std::span<const std::byte> from) const;
};

/// Samples as one batch, padded to the longest sample. It owns what its input() and targets() show.
struct albert_batch {
  pass_shape shape;
  std::vector<token_id> tokens, segments, places, labels, classes;
  std::vector<float> present, weights;
  albert_input input() const { return {shape, tokens, segments, present}; }
  albert_targets targets() const { return {places, labels, weights, classes}; }
};

/// The weight of a label is 1 / labels of its sample, so that the loss of a sample does not depend
/// on the other samples. With `equal_weights` it is 1. Either all samples have an order, or none.
albert_batch albert_batch_of(std::span<const albert_sample> samples, bool equal_weights = false);

} // namespace shoal::learn
