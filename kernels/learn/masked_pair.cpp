#include "kernels/learn/masked_pair.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shoal::learn {

namespace {

constexpr token_id byte_tokens_from = 5;

class byte_pieces final : public text_codec {
public:
  std::int64_t vocabulary() const override { return byte_tokens_from + 256; }
  std::vector<token_id> encode(std::string_view text) const override {
    std::vector<token_id> out;
    for (const char c : text) out.push_back(byte_tokens_from + static_cast<unsigned char>(c));
    return out;
  }
  std::string decode(std::span<const token_id> tokens) const override {
    std::string out;
    for (const auto token : tokens)
      if (token >= byte_tokens_from) out += static_cast<char>(token - byte_tokens_from);
    return out;
  }
};

std::size_t length_at(std::span<const std::byte> from, std::size_t at) {
  std::uint16_t out = 0;
  std::memcpy(&out, from.data() + at, sizeof out);
  return out;
}

} // namespace

pair_vocabulary byte_pair_vocabulary() {
  auto codec = std::make_shared<const byte_pieces>();
  const auto tokens = codec->vocabulary();
  pair_vocabulary out;
  out.codec = std::move(codec);
  out.tokens = tokens;
  out.space_between_words = true;
  return out;
}

albert_sample masked_sample(const segment_pair& of, std::uint64_t index,
                            const pair_vocabulary& with, const masking_options& options) {
  SHOAL_CHECK(options.length >= 5, "a sample has room for two segments");
  auto first = with.codec->encode(of.first), second = with.codec->encode(of.second);
  const auto room = static_cast<std::size_t>(options.length) - 3;
  while (first.size() + second.size() > room)
    (first.size() > second.size() ? first : second).pop_back();

  albert_sample out;
  out.order = of.order;
  out.tokens.push_back(with.start);
  out.tokens.insert(out.tokens.end(), first.begin(), first.end());
  out.tokens.push_back(with.separator);
  out.first = out.tokens.size();
  out.tokens.insert(out.tokens.end(), second.begin(), second.end());
  out.tokens.push_back(with.separator);
  out.labels.assign(out.tokens.size(), albert_sample::no_label);
  auto random = stream(options.seed, "masking", index);
  for (std::size_t i = 1; i + 1 < out.tokens.size(); ++i) {
    if (i + 1 == out.first || random.uniform() >= options.chosen) continue;
    out.labels[i] = out.tokens[i];
    const double how = random.uniform();
    if (how < 0.8)
      out.tokens[i] = with.mask;
    else if (how < 0.9)
      out.tokens[i] = static_cast<token_id>(random.below(static_cast<std::uint64_t>(with.tokens)));
  }
  return out;
}

std::size_t pair_text_bytes(std::int64_t length) noexcept {
  return std::min<std::size_t>(12 * static_cast<std::size_t>(length), 65535);
}

result<void> pair_format::check(std::span<const std::byte> samples) const {
  if (samples.size() % bytes() != 0)
    return failure{"samples: " + std::to_string(samples.size()) + " bytes are no pairs of " +
                   std::to_string(bytes()) + " each"};
  for (std::size_t at = 0; at < samples.size(); at += bytes()) {
    const auto one = samples.subspan(at, bytes());
    if (length_at(one, 8) + length_at(one, 10) > text_bytes || std::to_integer<int>(one[12]) > 1)
      return failure{"samples: number " + std::to_string(at / bytes()) + " says that it has " +
                     std::to_string(length_at(one, 8)) + " and " +
                     std::to_string(length_at(one, 10)) + " bytes of text in the order " +
                     std::to_string(std::to_integer<int>(one[12])) + "; it has room for " +
                     std::to_string(text_bytes) + ", and the order is 0 or 1"};
  }
  return {};
}

void pair_format::write(const segment_pair& pair, std::uint64_t index,
                        std::span<std::byte> out) const {
  SHOAL_CHECK(out.size() == bytes() && pair.first.size() + pair.second.size() <= text_bytes,
              "a pair fits its format");
  std::fill(out.begin(), out.end(), std::byte{0});
  const auto first = static_cast<std::uint16_t>(pair.first.size()),
             second = static_cast<std::uint16_t>(pair.second.size());
  std::memcpy(out.data(), &index, 8);
  std::memcpy(out.data() + 8, &first, 2);
  std::memcpy(out.data() + 10, &second, 2);
  out[12] = static_cast<std::byte>(pair.order);
  std::copy_n(std::as_bytes(std::span(pair.first)).begin(), pair.first.size(), out.begin() + 16);
  std::copy_n(std::as_bytes(std::span(pair.second)).begin(), pair.second.size(),
              out.begin() + 16 + static_cast<std::ptrdiff_t>(pair.first.size()));
}

pair_format::indexed pair_format::read(std::span<const std::byte> from) const {
  indexed out;
  std::memcpy(&out.index, from.data(), 8);
  const auto* text = reinterpret_cast<const char*>(from.data()) + 16;
  out.pair.first.assign(text, length_at(from, 8));
  out.pair.second.assign(text + length_at(from, 8), length_at(from, 10));
  out.pair.order = std::to_integer<token_id>(from[12]);
  return out;
}

} // namespace shoal::learn
