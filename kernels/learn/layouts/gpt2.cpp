// GPT-2: learned positions, layer norms with biases, gelu_new; matrices are [in, out] in the file.
// Source: huggingface/transformers, modeling_gpt2.py.
#include "kernels/learn/layouts/decoder_layout.hpp"

#include <utility>

namespace shoal::learn {

// A layout may name its parts as other layouts name theirs.
namespace gpt2_layout_parts {
namespace {

result<decoder_config> config_of(const model_config& from) {
  const auto& c = std::get<hugging_face::gpt2_config>(from);
  if (c.activation == "relu") return failure{"has the activation 'relu', which no decoder has"};
  decoder_config out;
  out.layers = c.layers;
  out.heads = out.kv_heads = c.heads;
  out.dim = c.hidden;
  out.hidden = c.intermediate;
  out.context = c.positions;
  out.vocabulary = c.vocabulary;
  out.norm = norm_kind::layer;
  out.mlp = c.activation == "gelu" ? mlp_kind::gelu : mlp_kind::gelu_tanh;
  out.positions = position_kind::learned;
  out.biases = true;
  out.epsilon = c.norm_epsilon;
  return out;
}

tensor_source place_of(std::string_view slot) {
  using order = tensor_source::order;
  constexpr std::pair<std::string_view, const char*> matrices[] = {{"attention_qkv", "attn.c_attn"},
                                                                   {"attention_out", "attn.c_proj"},
                                                                   {"mlp_up", "mlp.c_fc"},
                                                                   {"mlp_down", "mlp.c_proj"}};
  constexpr std::pair<std::string_view, const char*> others[] = {{"embedding", "wte"},
                                                                 {"position_embedding", "wpe"},
                                                                 {"attention_norm", "ln_1"},
                                                                 {"mlp_norm", "ln_2"},
                                                                 {"final_norm", "ln_f"}};
  const bool bias = slot.ends_with("_bias");
  if (bias) slot.remove_suffix(std::string_view("_bias").size());
  const auto named = [&](const char* name) {
    return std::string(name) + (bias ? ".bias" : ".weight");
  };
  for (const auto& [ours, theirs] : matrices)
    if (slot == ours) return {named(theirs), bias ? order::same : order::transposed};
  for (const auto& [ours, theirs] : others)
    if (slot == ours) return {named(theirs)};
  return {std::string(slot)};
}

} // namespace
} // namespace gpt2_layout_parts

decoder_layout gpt2_layout() {
  using namespace gpt2_layout_parts;
  decoder_layout out;
  out.type = "gpt2";
  out.prefix = "transformer.";
  out.layer_prefix = "h.";
  out.config_of = config_of;
  out.source_of = place_of;
  return out;
}

} // namespace shoal::learn
