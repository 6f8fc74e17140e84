// The border between DALL-E and libtorch, like transformer_math.hpp.
#pragma once

#include "kernels/layout.hpp"
#include "kernels/learn/dalle_layout.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shoal::learn {

struct dalle_shape {
  dalle_config config;
  /// A backward pass computes the activations again from the output of the last layer, so its
  /// memory does not grow with the depth. Otherwise autograd keeps all of them.
  bool reversible = true;
  std::vector<kernels::tensor_slot> layout;
};

struct dalle_batch {
  std::int64_t samples = 0;
  std::vector<token_id> text;  ///< [samples, text_length], from 0 on padding
  std::vector<token_id> codes; ///< [samples, side * side]
};

/// The mean cross-entropy of a caption's tokens, and that of a picture's codes, in nats.
struct dalle_loss {
  double text = 0, image = 0;
  double total() const noexcept {
    return (text + dalle_image_weight * image) / (1 + dalle_image_weight);
  }
};

/// Predicts codes one after the other. It keeps the keys and values of earlier positions.
class dalle_decoder {
public:
  virtual ~dalle_decoder() = default;
  /// [samples, codes] unnormalized log-probabilities of the next code of each picture.
  virtual const std::vector<float>& logits() const = 0;
  /// Requires: a code for each picture, and pictures that are not complete.
  virtual void add(std::span<const token_id> codes) = 0;
};

/// The functions of `dalle`, which checks sizes and tokens.
class dalle_math {
public:
  virtual ~dalle_math() = default;
  /// Adds the gradient of the sum of the total() losses to `gradient_sum`.
  virtual std::vector<dalle_loss> accumulate_gradient(std::span<const float> parameters,
                                                      const dalle_batch& batch,
                                                      std::span<float> gradient_sum) const = 0;
  virtual std::vector<dalle_loss> losses(std::span<const float> parameters,
                                         const dalle_batch& batch) const = 0;
  /// Starts a picture for each entry of `caption_of`, which is the number of its caption.
  /// `parameters` live as long as the decoder. Requires: a caption for each entry.
  virtual std::unique_ptr<dalle_decoder> decode(std::span<const float> parameters,
                                                const dalle_batch& captions,
                                                std::span<const std::int64_t> caption_of) const = 0;
};

} // namespace shoal::learn

extern "C" {
/// The caller owns the returned object.
shoal::learn::dalle_math* shoal_make_dalle_math(const shoal::learn::dalle_shape& shape);
}
