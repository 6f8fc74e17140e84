#include "kernels/learn/formats/llama2c_tokenizer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <unordered_set>

namespace shoal::learn {

namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

constexpr std::size_t longest_token = 256; // each token has a merge for each place to cut it

} // namespace

result<tokenizer_description> parse_llama2c_tokenizer(std::string_view bytes,
                                                      const std::string& name) {
  const auto refused = [&](const std::string& why) -> result<tokenizer_description> {
    return failure{"tokenizer: '" + name + "' is no tokenizer of llama2.c: " + why};
  };
  if (bytes.size() < 4) return refused("it has less than 4 bytes");
  bytes.remove_prefix(4);
  byte_pairs_description model;
  std::vector<float> scores;
  while (!bytes.empty()) {
    const auto token = std::to_string(scores.size());
    float score = 0;
    std::int32_t length = 0;
    if (bytes.size() < 8) return refused("it is truncated in token " + token);
    std::memcpy(&score, bytes.data(), 4);
    std::memcpy(&length, bytes.data() + 4, 4);
    bytes.remove_prefix(8);
    if (length <= 0 || static_cast<std::size_t>(length) > longest_token)
      return refused("token " + token + " has a length of " + std::to_string(length));
    if (static_cast<std::size_t>(length) > bytes.size())
      return refused("it is truncated in token " + token);
    if (!std::isfinite(score)) return refused("token " + token + " has a score that is no number");
    model.tokens.emplace_back(bytes.substr(0, static_cast<std::size_t>(length)));
    bytes.remove_prefix(static_cast<std::size_t>(length));
    scores.push_back(score);
  }
  if (scores.size() < 3) return refused("it has less than 3 tokens");

  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  const std::unordered_set<std::string_view> known(model.tokens.begin(), model.tokens.end());
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && scores[order[i]] != scores[order[i - 1]]) ++rank;
    const std::string_view text = model.tokens[order[i]];
    for (std::size_t cut = 1; cut < text.size(); ++cut)
      if (known.contains(text.substr(0, cut)) && known.contains(text.substr(cut))) {
        model.merges.emplace_back(text.substr(0, cut), text.substr(cut));
        model.ranks.push_back(rank);
      }
  }
  model.byte_fallback = true;
  tokenizer_description out;
  out.normalizer = {{normalizer_kind::prepend, {}, " "}};
  for (token_id id = 0; id < 3; ++id) {
    added_token special;
    special.id = id;
    special.content = model.tokens[static_cast<std::size_t>(id)];
    special.special = true;
    special.in_texts = false;
    out.added.push_back(std::move(special));
  }
  out.decoder = decoder_kind::byte_fallback;
  out.model = std::move(model);
  return out;
}

} // namespace shoal::learn
