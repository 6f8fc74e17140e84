// ALBERT in pieces (layered_model.hpp). All layers share their weights, so every block of layers
// has the same tensors. The gradient of the whole model is the sum over the blocks. A piece gets
// numbers alone:
//   input of the embedding: token + vocabulary * segment for a token, 2 * vocabulary for padding
//   activations: `hidden` values, and then 1 for a token or 0 for padding. A lossy codec may change
//   the 1, and no codec the 0. So a piece takes any number above 0 for a token.
//   target of a token: the token to predict, or `vocabulary` for none. The first target of a sample
//   is `vocabulary` + 1 + (1 if its segments are swapped), because nothing masks the first token.
// A target that stands for no order gives a sample without that part of the loss.
#pragma once

#include "kernels/learn/albert_layout.hpp"
#include "kernels/learn/albert_sample.hpp"
#include "kernels/learn/layered_model.hpp"

#include <memory>
#include <span>
#include <vector>

namespace shoal::learn {

/// The function logits() of the result fails, because ALBERT predicts no next token. Errors: sizes
/// that validate() refuses; a head other than `pretraining`; libtorch cannot be loaded.
result<std::unique_ptr<const layered_model>> make_albert_blocks(const albert_config& config,
                                                                bool checkpoint = false);

/// Samples in the form that the pieces take.
struct albert_piece_batch {
  pass_shape shape;
  std::vector<token_id> inputs, targets; ///< [samples * time]
};
/// `least_time`: samples are padded to at least so many tokens.
albert_piece_batch albert_pieces_of(std::span<const albert_sample> samples, std::int64_t vocabulary,
                                    std::int64_t least_time = 1);

} // namespace shoal::learn
