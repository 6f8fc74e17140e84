// Models that a swarm can serve, from the files that people have: llama2.c, a folder of Hugging
// Face, a checkpoint of Shoal. Or a model with random weights, which needs no file.
#pragma once

#include "kernels/base/digest.hpp"
#include "kernels/base/result.hpp"
#include "kernels/learn/decoder.hpp"
#include "kernels/learn/text_codec.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

struct served_model {
  std::string name;
  std::shared_ptr<const decoder> model;
  std::vector<float> parameters; ///< in the order of model->layout()
  std::shared_ptr<const text_codec> codec;
  std::optional<token_id> begin; ///< the token before each text
  std::optional<token_id> stop;  ///< the token after the end of a text

  /// Names the model: equal configurations and weights have equal digests.
  digest identity() const;
  /// The tokens of `text`, with `begin` before them.
  std::vector<token_id> encode(std::string_view text) const;
  /// The piece of the parameters with these tensors.
  std::vector<float> part(const std::vector<kernels::tensor_slot>& tensors) const;
};

/// Loads `path`.
///   *.bin: llama2.c. Its tokenizer is the file `tokenizer`, or tok<vocabulary>.bin or
///     tokenizer.bin beside it
///   a folder: config.json and the weights (formats/model_weights.hpp) of a model of layouts/, with
///     such a tokenizer, or one that load_tokenizer() finds in the folder
///   other files: a checkpoint of the transformer, whose tokens are bytes
/// Errors: as the readers of the formats. A model of another kind. No tokenizer (names the missing
/// files).
result<served_model> load_served_model(const std::filesystem::path& path,
                                       const std::filesystem::path& tokenizer);

/// A LLaMA of bytes with random weights. Its text is no language.
served_model random_served_model(std::int64_t layers, std::uint64_t seed);

} // namespace shoal::learn
