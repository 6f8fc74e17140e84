#include "kernels/learn/generate.hpp"

namespace shoal::learn {

std::string generate(const transformer& model, std::span<const float> parameters,
                     std::string_view prompt, std::size_t count, const sampling_options& options,
                     rng& random) {
  std::string text(prompt.empty() ? std::string_view("\n") : prompt);
  const auto start = text.size();
  while (text.size() < start + count) {
    const std::span seen(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    text.push_back(static_cast<char>(choose(model.next_logits(parameters, seen), options, random)));
  }
  return text.substr(start);
}

std::string printable(std::string_view bytes) {
  std::string text(bytes);
  for (char& c : text)
    if (c != '\n' && c != '\t' && (c < ' ' || c > '~'))
      c = '?';
  return text;
}

} // namespace shoal::learn
