#include "kernels/learn/tokens.hpp"

#include "kernels/base/check.hpp"

#include <bit>
#include <cstring>
#include <string>

namespace shoal::learn {

static_assert(std::endian::native == std::endian::little,
              "tokens are read as the machine's numbers");

namespace {

/// Calls use(number) with the type of a token's bytes.
template <class Use>
void with_width(std::int64_t vocabulary, Use use) {
  switch (token_bytes(vocabulary)) {
  case 1:
    return use(std::uint8_t{});
  case 2:
    return use(std::uint16_t{});
  default:
    return use(std::uint32_t{});
  }
}

} // namespace

result<void> check_whole_samples(std::span<const std::byte> samples, std::size_t bytes_each) {
  if (samples.size() % bytes_each == 0) return {};
  return failure{"samples: " + std::to_string(samples.size()) + " bytes are no samples of " +
                 std::to_string(bytes_each) + " each"};
}

result<void> check_tokens(std::span<const std::byte> bytes, std::int64_t vocabulary) {
  const auto width = token_bytes(vocabulary);
  if (bytes.size() % width != 0)
    return failure{"tokens: " + std::to_string(bytes.size()) + " bytes are no tokens of " +
                   std::to_string(width) + " bytes each"};
  std::size_t wrong = bytes.size();
  std::int64_t found = 0;
  with_width(vocabulary, [&]<class Number>(Number number) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(Number)) {
      std::memcpy(&number, bytes.data() + at, sizeof(Number));
      if (std::int64_t{number} >= vocabulary && wrong == bytes.size()) {
        wrong = at;
        found = number;
      }
    }
  });
  if (wrong == bytes.size()) return {};
  return failure{"tokens: number " + std::to_string(wrong / width) + " is " +
                 std::to_string(found) + "; the vocabulary has " + std::to_string(vocabulary)};
}

void decode_tokens(std::span<const std::byte> bytes, std::int64_t vocabulary,
                   std::span<token_id> ids) {
  SHOAL_CHECK(bytes.size() == ids.size() * token_bytes(vocabulary),
              "there are as many bytes as the tokens have");
  with_width(vocabulary, [&]<class Number>(Number number) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::memcpy(&number, bytes.data() + i * sizeof(Number), sizeof(Number));
      ids[i] = static_cast<token_id>(number);
    }
  });
}

void encode_tokens(std::span<const token_id> ids, std::int64_t vocabulary,
                   std::span<std::byte> bytes) {
  SHOAL_CHECK(bytes.size() == ids.size() * token_bytes(vocabulary),
              "there is room for the tokens' bytes");
  with_width(vocabulary, [&]<class Number>(Number number) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      SHOAL_CHECK(ids[i] >= 0 && ids[i] < vocabulary, "a token is in the vocabulary");
      number = static_cast<Number>(ids[i]);
      std::memcpy(bytes.data() + i * sizeof(Number), &number, sizeof(Number));
    }
  });
}

} // namespace shoal::learn
