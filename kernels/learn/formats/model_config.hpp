// Reads and writes config.json, in which Hugging Face's models have their sizes, and lists the
// tensors that a model of these sizes has. It knows ALBERT, LLaMA, GPT-2 and BLOOM.
// Shapes: a linear layer is [out, in], except in GPT-2, which has [in, out]. ALBERT shares one
// layer in each of its groups. Tied output matrices are in no file.
// Source: huggingface/transformers, configuration_albert.py, configuration_llama.py,
// configuration_gpt2.py and configuration_bloom.py; the names of the tensors: the modeling files
// beside them.
#pragma once

#include "kernels/base/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace shoal::learn {

/// The sizes with the defaults and the limits of transformers.
namespace hugging_face {

/// ALBERT for pre-training: with the heads for masked tokens (MLM) and the order of sentences
/// (SOP).
struct albert_config {
  std::int64_t vocabulary = 30000, embedding = 128, hidden = 4096, layers = 12, groups = 1,
               layers_in_group = 1, heads = 64, intermediate = 16384, positions = 512, types = 2;
  std::string activation = "gelu_new";
  double norm_epsilon = 1e-12, initializer_range = 0.02;
  double hidden_dropout = 0, attention_dropout = 0, classifier_dropout = 0.1;
  std::int64_t pad = 0, bos = 2, eos = 3;
  bool operator==(const albert_config&) const = default;
};

struct llama_config {
  std::int64_t vocabulary = 32000, hidden = 4096, intermediate = 11008, layers = 32, heads = 32,
               kv_heads = 32, positions = 2048;
  std::string activation = "silu";
  double norm_epsilon = 1e-6, rope_theta = 10000, initializer_range = 0.02;
  std::int64_t bos = 1, eos = 2;
  bool tied = false; ///< the output matrix is the embedding
  bool operator==(const llama_config&) const = default;
};

struct gpt2_config {
  std::int64_t vocabulary = 50257, hidden = 768, layers = 12, heads = 12, intermediate = 3072,
               positions = 1024;
  std::string activation = "gelu_new";
  double norm_epsilon = 1e-5, initializer_range = 0.02;
  std::int64_t bos = 50256, eos = 50256;
  bool operator==(const gpt2_config&) const = default;
};

struct bloom_config {
  std::int64_t vocabulary = 250880, hidden = 64, layers = 2, heads = 8, positions = 2048;
  double norm_epsilon = 1e-5, initializer_range = 0.02;
  std::int64_t bos = 1, eos = 2, pad = 3;
  bool operator==(const bloom_config&) const = default;
};

} // namespace hugging_face

using model_config = std::variant<hugging_face::albert_config, hugging_face::llama_config,
                                  hugging_face::gpt2_config, hugging_face::bloom_config>;

/// Missing keys have the defaults above, which are those of transformers. Errors call the file
/// `name`: it is no JSON, or has a model_type that Shoal does not know. A size is not positive or
/// above 2^31, or heads do not divide a width. An option changes the model and is not supported,
/// such as attention_bias or rope_scaling.
result<model_config> parse_model_config(std::string_view text, const std::string& name);
result<model_config> load_model_config(const std::filesystem::path& path);
/// The file's contents: model_type, architectures and all sizes. The same sizes give the same text.
std::string model_config_json(const model_config& config);

/// 'albert', 'llama', 'gpt2' or 'bloom'.
std::string_view model_type(const model_config& config);

/// The tokens that begin and end a text, as the file gives them.
std::pair<std::int64_t, std::int64_t> ends_of_text(const model_config& config);

struct tensor_shape {
  std::string name;
  std::vector<std::int64_t> shape;
};
/// The tensors in the order of the published files. Requires: a config of parse_model_config().
/// Errors: more than 2^16 tensors.
result<std::vector<tensor_shape>> tensors_of(const model_config& config);
/// The number of all values. Requires: tensors of tensors_of(). Saturates at 2^63 - 1.
std::int64_t parameter_count(const std::vector<tensor_shape>& tensors);

} // namespace shoal::learn
