// Generates tokens or text with a trained model, one token at a time. The model sees the last
// tokens of the text so far.
#pragma once

#include "kernels/base/rng.hpp"
#include "kernels/learn/model.hpp"
#include "kernels/learn/sampling.hpp"
#include "kernels/learn/text_codec.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

/// `count` tokens that follow `prompt`, without the prompt.
/// Requires: parameters.size() == model.parameter_count(), validate(options), a prompt that is not
/// empty and whose tokens are in the vocabulary.
std::vector<token_id> generate(const language_model& model, std::span<const float> parameters,
                               std::span<const token_id> prompt, std::size_t count,
                               const sampling_options& options, rng& random);

/// The same for text: `count` tokens that follow `prompt` (a line feed if empty), as text.
/// Requires: as above, codec.vocabulary() == model.vocabulary().
std::string generate(const language_model& model, std::span<const float> parameters,
                     const text_codec& codec, std::string_view prompt, std::size_t count,
                     const sampling_options& options, rng& random);

} // namespace shoal::learn
