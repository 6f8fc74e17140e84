// Reads the model files of llama2.c (version 0, such as stories260K.bin), and names their tensors
// as Hugging Face's LLaMA does. Little-endian, without magic:
//   7 x i32: dim, hidden_dim, layers, heads, kv_heads, vocabulary, context; then float32, with
//   d = dim / heads and all layers of one kind together [layers, ...]:
//   token_embedding [V, dim], rms_att [dim], wq [dim, dim], wk and wv [kv_heads d, dim], wo [dim,
//   dim], rms_ffn [dim], w1 [hidden, dim], w2 [dim, hidden], w3 [hidden, dim]; rms_final [dim];
//   two tables of the rotary embedding [context, d / 2]; and wcls [V, dim] if the vocabulary is
//   negative, which means that the output matrix is not the embedding.
// Source: karpathy/llama2.c, export.py (legacy_export) and run.c (memory_map_weights).
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/formats/named_tensor.hpp"

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace shoal::learn {

/// The sizes of a LLaMA. heads is a multiple of kv_heads, and dim of 2 heads.
struct llama_shape {
  std::int64_t dim = 0, hidden_dim = 0, layers = 0, heads = 0, kv_heads = 0, vocabulary = 0,
               context = 0;
  bool tied = true; ///< the output matrix is the embedding
  bool operator==(const llama_shape&) const = default;
};

struct llama2c_model {
  llama_shape shape;
  /// model.embed_tokens.weight, model.layers.{i}.{input_layernorm, self_attn.{q,k,v,o}_proj,
  /// post_attention_layernorm, mlp.{gate,up,down}_proj}.weight, model.norm.weight, and
  /// lm_head.weight if not tied. The file rotates rows (2 j, 2 j + 1) of a
  /// head together, and Hugging Face rows (j, j + d / 2). Here q and k have Hugging Face's order.
  std::vector<named_tensor> tensors;
};

/// Errors: no such file, sizes that make no sense, a later version (by its magic), or a length that
/// is not that of the sizes. No memory is taken before the length is checked.
result<llama2c_model> load_llama2c(const std::filesystem::path& path);
/// The same from a stream of `size` bytes, which errors call `name`.
result<llama2c_model> read_llama2c(std::istream& in, std::uint64_t size, const std::string& name);

/// The number of parameters, without the tables.
std::uint64_t parameter_count(const llama_shape& shape);

} // namespace shoal::learn
