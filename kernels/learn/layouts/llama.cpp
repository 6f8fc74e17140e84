// LLaMA: rotary positions by halves, root mean square norms, SwiGLU, grouped heads.
// Source: huggingface/transformers, modeling_llama.py.
#include "kernels/learn/llama.hpp"

#include "kernels/learn/layouts/decoder_layout.hpp"

namespace shoal::learn {

// A layout may name its parts as other layouts name theirs.
namespace llama_layout_parts {
namespace {

result<decoder_config> config_of(const model_config& from) {
  const auto& c = std::get<hugging_face::llama_config>(from);
  llama_shape shape;
  shape.dim = c.hidden;
  shape.hidden_dim = c.intermediate;
  shape.layers = c.layers;
  shape.heads = c.heads;
  shape.kv_heads = c.kv_heads;
  shape.vocabulary = c.vocabulary;
  shape.context = c.positions;
  shape.tied = c.tied;
  auto out = llama_config(shape);
  if (!out) return out;
  out->epsilon = c.norm_epsilon;
  out->rotary_base = c.rope_theta;
  return out;
}

} // namespace
} // namespace llama_layout_parts

decoder_layout llama_layout() {
  using namespace llama_layout_parts;
  decoder_layout out;
  out.type = "llama";
  out.layer_prefix = "model.layers.";
  out.begins_texts = true;
  out.config_of = config_of;
  out.source_of = [](std::string_view slot) {
    return tensor_source{llama_tensor_name(std::string(slot))};
  };
  return out;
}

} // namespace shoal::learn
