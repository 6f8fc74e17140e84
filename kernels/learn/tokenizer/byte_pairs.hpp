// Byte-pair encoding. A piece of text becomes its characters. Then the adjacent pair that was
// learnt first is joined, the leftmost one of equals, until no pair is left.
// Source: Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword
// Units", arXiv:1508.07909, section 3.2; over bytes: Radford et al., "Language Models are
// Unsupervised Multitask Learners" (2019), section 2.2 (splitter_kind::byte_level).
#pragma once

#include "kernels/learn/tokenizer/token_model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shoal::learn {

struct byte_pairs_description {
  std::vector<std::string> tokens{}; ///< token i
  /// The pairs that are joined, the first learnt first. The joined text is a token, too.
  std::vector<std::pair<std::string, std::string>> merges{};
  /// When each merge was learnt, if some were at once. Empty: one after the other.
  std::vector<std::uint32_t> ranks{};
  /// The token of unknown characters. Without one they are left out.
  std::optional<std::string> unknown{};
  bool fuse_unknown = false;  ///< a run of unknown characters becomes one token
  bool byte_fallback = false; ///< unknown characters become tokens '<0xE0>' of their bytes
  bool ignore_merges = false; ///< a piece that is a token becomes that token
  bool operator==(const byte_pairs_description&) const = default;
};

class byte_pairs final : public token_model {
public:
  /// Errors: a merge or an unknown token that is not in the vocabulary.
  static result<byte_pairs> make(byte_pairs_description description);

  const token_list& tokens() const override { return tokens_; }
  void encode(const split_text& text, std::vector<token_id>& to) const override;

private:
  byte_pairs() = default;
  struct scratch;
  void characters(std::string_view piece, scratch& with) const;
  void merge(scratch& with) const;

  struct merged {
    std::uint32_t rank;
    std::uint32_t token;
  };
  const merged* find(std::uint32_t left, std::uint32_t right) const;

  token_list tokens_;
  std::unordered_map<std::uint64_t, merged> merges_; ///< by left << 32 | right
  std::optional<token_id> unknown_;
  std::vector<token_id> bytes_; ///< empty without byte_fallback
  bool fuse_unknown_ = false, ignore_merges_ = false;
};

} // namespace shoal::learn
