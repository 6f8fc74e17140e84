// Text as tokens of a model, and tokens as text.
#pragma once

#include "kernels/learn/tokens.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

class text_codec {
public:
  virtual ~text_codec() = default;
  /// The number of tokens, equal to that of a model that uses this codec.
  virtual std::int64_t vocabulary() const = 0;
  virtual std::vector<token_id> encode(std::string_view text) const = 0;
  /// Requires: each token is in the vocabulary.
  virtual std::string decode(std::span<const token_id> tokens) const = 0;
};

/// The codec of the byte model: a token is a byte.
const text_codec& byte_codec();

/// For a terminal or JSON: bytes that are not printable ASCII or line feeds become '?'.
std::string printable(std::string_view bytes);

} // namespace shoal::learn
