// LoRA adapters: products of two thin matrices that are added to a model's weights.
//   W' = W + alpha / r * B A,   W [out, in], A [r, in], B [out, r]
// A folder of an adapter has adapter_model.safetensors and adapter_config.json (`lora_alpha`), as
// Hugging Face's peft writes them.
// Source: Hu et al., arXiv:2106.09685, section 4.1.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/decoder.hpp"
#include "kernels/learn/formats/named_tensor.hpp"

#include <filesystem>
#include <span>
#include <vector>

namespace shoal::learn {

struct lora_adapter {
  double alpha = 1;
  /// Names end in layers.{i}.{...}.{module}.lora_A.weight, and lora_B.weight.
  std::vector<named_tensor> tensors;
};

/// Errors: as the readers of the formats; no `lora_alpha`.
result<lora_adapter> load_lora(const std::filesystem::path& folder);

/// The parameters of a LLaMA with the adapter in its weights, in the order of layout_of(config).
/// Errors: an A without its B, a module that a LLaMA lacks, a layer that the model lacks, or a
/// matrix of another size. Each message names the tensor.
result<std::vector<float>> with_lora(const decoder_config& config, std::vector<float> parameters,
                                     const lora_adapter& adapter);

} // namespace shoal::learn
