// LLaMA as a decoder (decoder.hpp): its sizes, and its parameters from tensors with the names that
// Hugging Face gives them (formats/).
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/decoder.hpp"
#include "kernels/learn/formats/llama2c.hpp"
#include "kernels/learn/formats/named_tensor.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace shoal::learn {

/// Rotary pairs are halves, as Hugging Face's order of rows needs it. Errors: as validate().
result<decoder_config> llama_config(const llama_shape& shape);

/// Hugging Face's name of a tensor of layout_of(), such as model.layers.0.self_attn.q_proj.weight
/// for layer0.attention_q. A name without a layer, such as attention_q, gives the end of that name.
std::string llama_tensor_name(const std::string& slot);

/// The flat vector of the model. Errors: a tensor is missing, or has another shape.
result<std::vector<float>> llama_parameters(const decoder_config& config,
                                            std::span<const named_tensor> tensors);

} // namespace shoal::learn
