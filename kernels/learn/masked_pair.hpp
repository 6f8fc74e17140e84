// Makes samples of ALBERT's pre-training from text. A pair of segments becomes tokens, and some
// tokens are masked:
//   [start] A [separator] B [separator]; the longer segment is cut until all tokens fit
//   each token of A and B is chosen with probability `chosen`; of the chosen ones 80 % become the
//   mask, 10 % a token drawn from the whole vocabulary, and 10 % stay
// The draws depend on (seed, index) alone. So shards, peers, replicas and replays make the same
// sample from the same pair.
// Source: Devlin et al., "BERT", arXiv:1810.04805, section 3.1; the order of segments: Lan et al.,
// arXiv:1909.11942, section 3.1.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/albert_sample.hpp"
#include "kernels/learn/text_codec.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace shoal::learn {

/// A codec, and the tokens with a meaning of their own. The padding is token 0.
struct pair_vocabulary {
  std::shared_ptr<const text_codec> codec;
  std::int64_t tokens = 0; ///< the model's number of tokens, at least the codec's
  token_id start = 2, separator = 3, mask = 4;
  /// Whether a list of words needs the tokens of a space between them. Tokens of whole words mark
  /// the start of a word themselves.
  bool space_between_words = false;
};

/// Tokens 0 to 4 are <pad>, <unk>, [CLS], [SEP] and [MASK]; byte b is token 5 + b.
pair_vocabulary byte_pair_vocabulary();

/// Two segments of a text. `order` is 1 if `first` came after `second` in the text.
struct segment_pair {
  std::string first, second;
  token_id order = 0;
};

struct masking_options {
  std::int64_t length = 128; ///< the longest sample in tokens
  double chosen = 0.15;      ///< probability of a label
  std::uint64_t seed = 1;
};

/// The sample `index`. Requires: length >= 5.
albert_sample masked_sample(const segment_pair& of, std::uint64_t index,
                            const pair_vocabulary& with, const masking_options& options);

/// The room that the text of a sample of `length` tokens gets: 12 bytes for each token, at most
/// 65535.
std::size_t pair_text_bytes(std::int64_t length) noexcept;

/// A pair in a fixed number of bytes, for peers that make the sample themselves:
///   index u64, bytes of the first segment u16, bytes of the second one u16, order u8, three zeros;
///   then the text, and zeros.
struct pair_format {
  std::size_t text_bytes = 0; ///< room for both segments; at most 65535
  std::size_t bytes() const noexcept { return 16 + text_bytes; }

  /// Errors: which sample is wrong, and how.
  result<void> check(std::span<const std::byte> samples) const;
  /// Requires: out.size() == bytes(), a pair that fits.
  void write(const segment_pair& pair, std::uint64_t index, std::span<std::byte> out) const;
  struct indexed {
    segment_pair pair;
    std::uint64_t index = 0;
  };
  /// Requires: check(from), from.size() == bytes().
  indexed read(std::span<const std::byte> from) const;
};

} // namespace shoal::learn
