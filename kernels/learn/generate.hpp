// Text from a trained model, one byte at a time; the model sees the last `context` bytes of what
// there is so far.
#pragma once

#include "kernels/base/rng.hpp"
#include "kernels/learn/sampling.hpp"
#include "kernels/learn/transformer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shoal::learn {

/// `count` bytes that follow `prompt` (a line feed if empty), without the prompt.
/// Requires: parameters.size() == model.parameter_count(), validate(options).
std::string generate(const transformer& model, std::span<const float> parameters,
                     std::string_view prompt, std::size_t count, const sampling_options& options,
                     rng& random);

/// For a terminal or JSON: bytes that are not printable ASCII or line feeds become '?'.
std::string printable(std::string_view bytes);

} // namespace shoal::learn
