// The form of tokens in samples. A token is an unsigned little-endian number, whose width follows
// from the model's vocabulary:
//   1 byte up to 256 tokens, 2 bytes (uint16) up to 65,536, 4 bytes (uint32) above.
// So a sample of the byte model is the text itself.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::learn {

/// A token inside a model: from 0 to vocabulary - 1. Vocabularies have at most 2^31 tokens.
using token_id = std::int64_t;

/// Bytes of a token in a sample.
constexpr std::size_t token_bytes(std::int64_t vocabulary) noexcept {
  return vocabulary <= 256 ? 1 : vocabulary <= 65536 ? 2 : 4;
}

/// Whether `samples` are whole ones of `bytes_each` bytes, without gaps. Errors: another size.
result<void> check_whole_samples(std::span<const std::byte> samples, std::size_t bytes_each);

/// Whether `bytes` are tokens of the vocabulary. Errors: an incomplete token at the end, or a token
/// outside the vocabulary (which, and where).
result<void> check_tokens(std::span<const std::byte> bytes, std::int64_t vocabulary);

/// Requires: bytes.size() == ids.size() * token_bytes(vocabulary). The function does not check that
/// the tokens are in the vocabulary.
void decode_tokens(std::span<const std::byte> bytes, std::int64_t vocabulary,
                   std::span<token_id> ids);

/// Requires: as above, and 0 <= id < vocabulary for each.
void encode_tokens(std::span<const token_id> ids, std::int64_t vocabulary,
                   std::span<std::byte> bytes);

} // namespace shoal::learn
