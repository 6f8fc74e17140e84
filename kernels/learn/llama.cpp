#include "kernels/learn/llama.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shoal::learn {

result<decoder_config> llama_config(const llama_shape& shape) {
  decoder_config out;
  out.layers = shape.layers;
  out.heads = shape.heads;
  out.kv_heads = shape.kv_heads;
  out.dim = shape.dim;
  out.hidden = shape.hidden_dim;
  out.context = shape.context;
  out.vocabulary = shape.vocabulary;
  out.tied = shape.tied;
  out.rotary = rotary_pairs::halves;
  if (auto valid = validate(out); !valid) return failure{valid.error()};
  return out;
}

std::string llama_tensor_name(const std::string& slot) {
  constexpr std::pair<const char*, const char*> names[] = {
      {"attention_norm", "input_layernorm"}, {"attention_q", "self_attn.q_proj"},
      {"attention_k", "self_attn.k_proj"},   {"attention_v", "self_attn.v_proj"},
      {"attention_out", "self_attn.o_proj"}, {"mlp_norm", "post_attention_layernorm"},
      {"mlp_gate", "mlp.gate_proj"},         {"mlp_up", "mlp.up_proj"},
      {"mlp_down", "mlp.down_proj"}};
  if (slot == "embedding") return "model.embed_tokens.weight";
  if (slot == "final_norm") return "model.norm.weight";
  if (slot == "output") return "lm_head.weight";
  const std::string layer = "layer";
  const auto dot = slot.find('.');
  for (const auto& [ours, theirs] : names) {
    if (slot == ours) return std::string(theirs) + ".weight";
    if (slot.substr(dot + 1) == ours)
      return "model.layers." + slot.substr(layer.size(), dot - layer.size()) + "." + theirs +
             ".weight";
  }
  return slot;
}

result<std::vector<float>> llama_parameters(const decoder_config& config,
                                            std::span<const named_tensor> tensors) {
  const auto layout = layout_of(config);
  std::vector<float> out(kernels::end_of(layout));
  for (const auto& slot : layout) {
    const auto name = llama_tensor_name(slot.name);
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const named_tensor& each) { return each.name == name; });
    if (found == tensors.end()) return failure{"model: the tensor '" + name + "' is missing"};
    if (found->shape != slot.shape)
      return failure{"model: the tensor '" + name + "' does not have the shape of config.json"};
    std::copy(found->values.begin(), found->values.end(),
              out.begin() + static_cast<std::ptrdiff_t>(slot.offset));
  }
  return out;
}

} // namespace shoal::learn
