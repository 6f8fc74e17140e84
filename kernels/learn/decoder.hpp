// A decoder-only transformer in plain loops, without libtorch: LLaMA, GPT-2, BLOOM, and the byte
// transformer of transformer.hpp. A layer computes
//   x += out * attention(q, k, v),  with q, k and v = rotated and plain products of norm(x)
//   x += mlp(norm(x)),  mlp(h) = down * (silu(gate * h) . (up * h))  or  down * gelu(up * h)
// With biases, each product and each norm adds one. Positions enter by rotation, by vectors that
// are added to the embeddings (learned), or by slope * (key's position - query's) in the scores of
// attention (ALiBi).
// Every sum has a fixed order. So no cut of the layers into blocks changes a bit of a token's
// activations, and no division of the tokens into steps does.
// Source: Touvron et al., arXiv:2302.13971, section 2.2; RMS norm: Zhang and Sennrich,
// arXiv:1910.07467; SwiGLU: Shazeer, arXiv:2002.05202; grouped heads: Ainslie et al.,
// arXiv:2305.13245; rotary positions: Su et al., arXiv:2104.09864; ALiBi: Press et al.,
// arXiv:2108.12409; GPT-2: Radford et al., "Language Models are Unsupervised Multitask Learners",
// section 2.3; BLOOM: arXiv:2211.05100, section 3.2.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/learn/layered_model.hpp"
#include "kernels/learn/served_block.hpp"
#include "kernels/learn/weight_matrix.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shoal::learn {

/// The norm before attention and mlp. `layer` has a gain, and a bias only with `biases`.
enum class norm_kind : std::uint8_t { root_mean_square, layer };
/// gelu(x) = x Phi(x), with the error function. gelu_tanh is its approximation
/// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
enum class mlp_kind : std::uint8_t { swiglu, gelu, gelu_tanh };
enum class position_kind : std::uint8_t { rotary, learned, alibi };
/// The pairs of a head's values that are rotated together: (2i, 2i + 1) or (i, i + width / 2).
enum class rotary_pairs : std::uint8_t { interleaved, halves };

struct decoder_config {
  std::int64_t layers = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1; ///< heads / kv_heads query heads share keys and values
  std::int64_t dim = 2;      ///< width of the residual stream; a multiple of 2 * heads
  std::int64_t hidden = 1;   ///< width inside the mlp
  std::int64_t context = 1;  ///< tokens of the longest sequence
  std::int64_t vocabulary = 1;
  norm_kind norm = norm_kind::root_mean_square;
  mlp_kind mlp = mlp_kind::swiglu;
  position_kind positions = position_kind::rotary;
  rotary_pairs rotary = rotary_pairs::interleaved;
  bool biases = false;         ///< needs an mlp without gate, and as many kv_heads as heads
  bool embedding_norm = false; ///< a norm of the embeddings, before the first layer
  double epsilon = 1e-5;
  double rotary_base = 10000;
  bool tied = true; ///< the output matrix is the embedding
  bool operator==(const decoder_config&) const = default;
};

/// Errors: a size that is not positive or larger than any that fits in memory; heads that do not
/// divide the width, or groups that do not divide the heads.
result<void> validate(const decoder_config& config);

/// The byte transformer of transformer.hpp. Its parameters are the same vector.
/// Requires: validate(config).
decoder_config decoder_of(const kernels::transformer_config& config);

/// The tensors in the order of the flat vector, without gaps.
///   embedding [vocabulary, dim]
///   position_embedding [context, dim] with learned positions
///   embedding_norm [dim], if there is one
///   for each layer: attention_norm [dim], attention_q [dim, dim], attention_k and attention_v
///     [kv_heads * dim / heads, dim], attention_out [dim, dim], mlp_norm [dim], mlp_gate [hidden,
///     dim] (swiglu), mlp_up [hidden, dim], mlp_down [dim, hidden]
///   final_norm [dim]; output [vocabulary, dim] unless tied
/// Without gate and with as many kv_heads as heads, q, k and v are one tensor attention_qkv, as in
/// kernels::layout_of. With biases, each norm and each matrix of a layer and the final norm have a
/// vector after them, such as mlp_up_bias [hidden]. Requires: validate(config).
std::vector<kernels::tensor_slot> layout_of(const decoder_config& config);

struct decoder_facts; // decoder_block.hpp

/// Thread safety: immutable; all functions may be called from several threads at once.
/// layered_model's functions pack the weights in each call. To serve, use block() and ends().
class decoder final : public layered_model {
public:
  /// Requires: validate(config).
  explicit decoder(const decoder_config& config);
  ~decoder() override;

  const decoder_config& config() const noexcept;
  const std::vector<kernels::tensor_slot>& layout() const noexcept;
  std::int64_t layers() const noexcept override;
  std::int64_t vocabulary() const noexcept override;
  std::int64_t context() const noexcept override;
  std::size_t width() const noexcept override;

  std::vector<kernels::tensor_slot> embedding_tensors() const override;
  result<std::vector<kernels::tensor_slot>> block_tensors(layer_range block) const override;
  std::vector<kernels::tensor_slot> head_tensors() const override;

  /// A block that serves `parameters`, those of block_tensors(), in the form `format`. Norms stay
  /// float32. Errors: layers that the model lacks, a vector of another size.
  result<std::unique_ptr<const served_block>>
  block(layer_range block, std::span<const float> parameters,
        weight_format format = weight_format::float32) const;
  /// Both ends. Errors: vectors of another size than embedding_tensors() and head_tensors().
  result<std::unique_ptr<const served_ends>> ends(std::span<const float> embedding,
                                                  std::span<const float> head) const;

  result<std::vector<float>> embed(std::span<const float> parameters, pass_shape shape,
                                   std::span<const token_id> tokens) const override;
  result<void> embed_backward(std::span<const float> parameters, pass_shape shape,
                              std::span<const token_id> tokens, std::span<const float> gradient_out,
                              std::span<float> gradient_sum) const override;
  result<std::vector<float>> forward(layer_range block, std::span<const float> parameters,
                                     pass_shape shape,
                                     std::span<const float> activations) const override;
  result<std::vector<float>> backward(layer_range block, std::span<const float> parameters,
                                      pass_shape shape, std::span<const float> activations,
                                      std::span<const float> gradient_out,
                                      std::span<float> gradient_sum) const override;
  result<double> loss(std::span<const float> parameters, pass_shape shape,
                      std::span<const float> activations,
                      std::span<const token_id> targets) const override;
  result<head_gradient> loss_backward(std::span<const float> parameters, pass_shape shape,
                                      std::span<const float> activations,
                                      std::span<const token_id> targets,
                                      std::span<float> gradient_sum) const override;
  result<std::vector<float>> logits(std::span<const float> parameters, pass_shape shape,
                                    std::span<const float> activations) const override;

private:
  std::shared_ptr<const decoder_facts> facts_;
};

} // namespace shoal::learn
