// A block of a model's layers whose weights do not change, ready to serve: by steps with a cache,
// or in one pass without state. Servers of an inference swarm hold one each.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/kv_cache.hpp"
#include "kernels/learn/layered_model.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace shoal::learn {

/// One session's part of a step: `time` tokens for each of the cache's samples. `activations`
/// [samples, time, width] holds the block's input, and afterwards its output.
struct cached_step {
  kv_cache* cache = nullptr;
  std::size_t time = 1;
  std::span<float> activations;
};

/// Thread safety: immutable; all functions may be called from several threads at once, with
/// different caches.
class served_block {
public:
  virtual ~served_block() = default;

  /// The number of layers, and of floats in a token's activations.
  virtual std::size_t layers() const noexcept = 0;
  virtual std::size_t width() const noexcept = 0;
  /// The largest number of tokens in a sequence.
  virtual std::size_t context() const noexcept = 0;
  /// The floats that a cache needs for a token of one sequence, in all layers.
  virtual std::size_t cache_floats() const noexcept = 0;
  /// The bytes of the weights in memory.
  virtual std::size_t weight_bytes() const noexcept = 0;

  /// A cache for `samples` sequences of at most `most` tokens. Errors: no sequence, or more tokens
  /// than the context has.
  virtual result<kv_cache> make_cache(std::size_t samples, std::size_t most) const = 0;
  /// Runs steps of several sessions at once. A session's result has the same bits alone, together
  /// with others, and in one step or many. Errors: a cache of another block, no room in a cache,
  /// activations of another size, or values that are not finite. After an error nothing has
  /// changed. Requires: each cache occurs once.
  virtual result<void> extend(std::span<const cached_step> steps) const = 0;

  /// One pass without state: the same bits as extend() with an empty cache. Errors: as those of
  /// layered_model::forward.
  virtual result<std::vector<float>> forward(pass_shape shape,
                                             std::span<const float> activations) const = 0;
  /// The gradient with respect to `activations`, the input of a forward pass.
  virtual result<std::vector<float>> backward(pass_shape shape, std::span<const float> activations,
                                              std::span<const float> gradient_out) const = 0;
};

/// The first and the last piece of a model, as a client of a swarm holds them.
class served_ends {
public:
  virtual ~served_ends() = default;

  virtual std::size_t vocabulary() const noexcept = 0;
  virtual std::size_t width() const noexcept = 0;
  virtual std::size_t context() const noexcept = 0;
  virtual std::size_t layers() const noexcept = 0;

  /// Activations [tokens, width] of tokens that follow each other from `position` on. Errors: a
  /// token outside the vocabulary, or a position outside the context of a model that needs it.
  virtual result<std::vector<float>> embed(std::span<const token_id> tokens,
                                           std::size_t position) const = 0;
  /// Logits [rows, vocabulary] of activations [rows, width]. Errors: no whole rows.
  virtual result<std::vector<float>> logits(std::span<const float> activations) const = 0;
};

} // namespace shoal::learn
