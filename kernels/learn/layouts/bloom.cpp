// BLOOM: ALiBi, a norm of the embeddings, layer norms with biases, gelu by tanh. The rows of q, k
// and v of one head lie together in the file.
// Source: huggingface/transformers, modeling_bloom.py.
#include "kernels/learn/layouts/decoder_layout.hpp"

#include <utility>

namespace shoal::learn {

// A layout may name its parts as other layouts name theirs.
namespace bloom_layout_parts {
namespace {

result<decoder_config> config_of(const model_config& from) {
  const auto& c = std::get<hugging_face::bloom_config>(from);
  decoder_config out;
  out.layers = c.layers;
  out.heads = out.kv_heads = c.heads;
  out.dim = c.hidden;
  out.hidden = 4 * c.hidden;
  out.context = c.positions;
  out.vocabulary = c.vocabulary;
  out.norm = norm_kind::layer;
  out.mlp = mlp_kind::gelu_tanh;
  out.positions = position_kind::alibi;
  out.biases = true;
  out.embedding_norm = true;
  out.epsilon = c.norm_epsilon;
  return out;
}

tensor_source place_of(std::string_view slot) {
  using order = tensor_source::order;
  constexpr std::pair<std::string_view, const char*> names[] = {
      {"embedding", "word_embeddings"},
      {"embedding_norm", "word_embeddings_layernorm"},
      {"attention_norm", "input_layernorm"},
      {"attention_qkv", "self_attention.query_key_value"},
      {"attention_out", "self_attention.dense"},
      {"mlp_norm", "post_attention_layernorm"},
      {"mlp_up", "mlp.dense_h_to_4h"},
      {"mlp_down", "mlp.dense_4h_to_h"},
      {"final_norm", "ln_f"}};
  const bool bias = slot.ends_with("_bias");
  if (bias) slot.remove_suffix(std::string_view("_bias").size());
  for (const auto& [ours, theirs] : names)
    if (slot == ours)
      return {std::string(theirs) + (bias ? ".bias" : ".weight"),
              slot == "attention_qkv" ? order::heads_together : order::same};
  return {std::string(slot)};
}

} // namespace
} // namespace bloom_layout_parts

decoder_layout bloom_layout() {
  using namespace bloom_layout_parts;
  decoder_layout out;
  out.type = "bloom";
  out.prefix = "transformer.";
  out.layer_prefix = "h.";
  out.config_of = config_of;
  out.source_of = place_of;
  return out;
}

} // namespace shoal::learn
