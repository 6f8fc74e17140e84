// Models of Hugging Face that the decoder can compute. A definition says which decoder the sizes of
// config.json give, and where each of its tensors lies in the file. A new model is one file in this
// folder and one line in decoder_layouts.cpp.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/decoder.hpp"
#include "kernels/learn/formats/model_config.hpp"
#include "kernels/learn/formats/model_weights.hpp"
#include "kernels/learn/tokens.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

/// The place of a tensor of layout_of() in the file.
struct tensor_source {
  enum class order : std::uint8_t {
    same,
    transposed,     ///< the file has [in, out]
    heads_together, ///< rows of q, k and v of one head after each other: (head, 3, width of a head)
  };
  std::string name;
  order in = order::same;
};

struct decoder_layout {
  std::string_view type;     ///< model_type in config.json
  std::string_view prefix{}; ///< before the names of tensors; some files leave it out
  bool begins_texts = false; ///< texts begin with the token `bos`
  /// Errors: an option that the decoder lacks.
  result<decoder_config> (*config_of)(const model_config& from) = nullptr;
  /// The place of the tensor `slot`. Names of a layer's tensors have no number: 'attention_qkv'
  /// stands for all, and the answer goes after `layer_prefix`.
  tensor_source (*source_of)(std::string_view slot) = nullptr;
  std::string_view layer_prefix{}; ///< 'h.', before the layer's number and a point
};

/// Null for another type.
const decoder_layout* find_decoder_layout(std::string_view type);
/// 'bloom, gpt2 and llama'.
std::string decoder_layout_names();

/// The name of the tensor in the file, without `prefix`, and its order.
tensor_source source_of(const decoder_layout& layout, std::string_view slot);

/// The flat vector of the model. Errors: a tensor is missing, or has another shape.
result<std::vector<float>> decoder_parameters(const decoder_layout& layout,
                                              const decoder_config& config,
                                              const model_weights& file);

// The definitions.
decoder_layout bloom_layout();
decoder_layout gpt2_layout();
decoder_layout llama_layout();

} // namespace shoal::learn
