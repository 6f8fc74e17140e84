// A sample of DALL-E: a caption's tokens and a picture's codes, packed to bits without gaps. Each
// token has the fewest bits for text_vocabulary, each code the fewest bits for the codes, and low
// bits come first. Bits behind the last code are 0. So 16 tokens of 1,000 and 64 codes of 512 take
// 92 bytes.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/dalle_layout.hpp"
#include "kernels/learn/dalle_math.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace shoal::learn {

struct dalle_sample {
  std::vector<token_id> text;  ///< text_length tokens; from the first 0 on all are padding
  std::vector<token_id> codes; ///< side * side, row by row
};

struct dalle_format {
  dalle_config config;
  std::size_t bytes() const noexcept;

  /// Whether `samples` are whole samples. Errors: which sample is wrong, and how.
  result<void> check(std::span<const std::byte> samples) const;
  /// Requires: out.size() == bytes(), a sample of the model's sizes.
  void write(const dalle_sample& from, std::span<std::byte> out) const;
  /// Requires: check(from), from.size() == bytes().
  dalle_sample read(std::span<const std::byte> from) const;
  /// Requires: check(samples).
  dalle_batch batch(std::span<const std::byte> samples) const;
};

} // namespace shoal::learn
