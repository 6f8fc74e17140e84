#include "kernels/learn/generate.hpp"

#include "kernels/base/check.hpp"

namespace shoal::learn {

std::vector<token_id> generate(const language_model& model, std::span<const float> parameters,
                               std::span<const token_id> prompt, std::size_t count,
                               const sampling_options& options, rng& random) {
  std::vector<token_id> tokens(prompt.begin(), prompt.end());
  while (tokens.size() < prompt.size() + count)
    tokens.push_back(
        static_cast<token_id>(choose(model.next_logits(parameters, tokens), options, random)));
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
  return tokens;
}

std::string generate(const language_model& model, std::span<const float> parameters,
                     const text_codec& codec, std::string_view prompt, std::size_t count,
                     const sampling_options& options, rng& random) {
  SHOAL_CHECK(codec.vocabulary() == model.vocabulary(), "the codec is that of the model");
  const auto start = codec.encode(prompt.empty() ? std::string_view("\n") : prompt);
  return codec.decode(generate(model, parameters, start, count, options, random));
}

} // namespace shoal::learn
