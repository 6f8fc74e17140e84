#include "kernels/learn/tokenizer/byte_pairs.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/tokenizer/unicode.hpp"

#include <algorithm>
#include <functional>

namespace shoal::learn {

/// The symbols of one piece, as a list whose members are joined, kept between pieces.
struct byte_pairs::scratch {
  static constexpr std::uint32_t none = 0xffffffff;
  struct symbol {
    std::uint32_t token, before, after;
    bool gone;
  };
  struct candidate {
    std::uint32_t rank, at, token;
    bool operator>(const candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  std::vector<symbol> symbols;
  std::vector<candidate> heap;

  void add(token_id token) {
    const auto at = static_cast<std::uint32_t>(symbols.size());
    if (at > 0) symbols.back().after = at;
    symbols.push_back({static_cast<std::uint32_t>(token), at == 0 ? none : at - 1, none, false});
  }
};

result<byte_pairs> byte_pairs::make(byte_pairs_description description) {
  if (description.tokens.empty()) return failure{"has no tokens"};
  if (description.tokens.size() >= std::size_t{1} << 31) return failure{"has too many tokens"};
  SHOAL_CHECK(description.ranks.empty() || description.ranks.size() == description.merges.size(),
              "each merge has a rank");
  byte_pairs out;
  out.tokens_ = token_list(std::move(description.tokens));
  const auto missing = [](std::size_t rank, const std::string& token) {
    return failure{"has the merge " + std::to_string(rank) + " with '" + token +
                   "', which is not in the vocabulary"};
  };
  out.merges_.reserve(description.merges.size());
  for (std::size_t rank = 0; rank < description.merges.size(); ++rank) {
    const auto& [left, right] = description.merges[rank];
    const auto a = out.tokens_.find(left), b = out.tokens_.find(right),
               both = out.tokens_.find(left + right);
    if (!a) return missing(rank, left);
    if (!b) return missing(rank, right);
    if (!both) return missing(rank, left + right);
    // The last one of equal merges counts.
    out.merges_[static_cast<std::uint64_t>(*a) << 32 | static_cast<std::uint64_t>(*b)] = {
        description.ranks.empty() ? static_cast<std::uint32_t>(rank) : description.ranks[rank],
        static_cast<std::uint32_t>(*both)};
  }
  if (description.unknown) {
    out.unknown_ = out.tokens_.find(*description.unknown);
    if (!out.unknown_)
      return failure{"has the unk_token '" + *description.unknown +
                     "', which is not in the vocabulary"};
  }
  // Without all of them, unknown characters have no spelling.
  if (description.byte_fallback) out.bytes_ = out.tokens_.byte_tokens();
  if (description.byte_fallback && out.bytes_.empty())
    return failure{"has byte_fallback without tokens '<0x00>' to '<0xFF>'"};
  out.fuse_unknown_ = description.fuse_unknown;
  out.ignore_merges_ = description.ignore_merges;
  return out;
}

const byte_pairs::merged* byte_pairs::find(std::uint32_t left, std::uint32_t right) const {
  const auto found = merges_.find(std::uint64_t{left} << 32 | right);
  return found == merges_.end() ? nullptr : &found->second;
}

void byte_pairs::characters(std::string_view piece, scratch& with) const {
  bool after_unknown = false;
  unicode::for_each(piece, [&](char32_t, std::size_t at, unsigned bytes) {
    const auto text = piece.substr(at, bytes);
    if (const auto token = tokens_.find(text)) {
      with.add(*token);
      after_unknown = false;
    } else if (!bytes_.empty()) {
      for (const char c : text) with.add(bytes_[static_cast<unsigned char>(c)]);
      after_unknown = false;
    } else if (unknown_) {
      if (!after_unknown || !fuse_unknown_) with.add(*unknown_);
      after_unknown = true;
    }
  });
}

void byte_pairs::merge(scratch& with) const {
  auto& symbols = with.symbols;
  auto& heap = with.heap;
  const auto offer = [&](std::uint32_t at) {
    const auto next = symbols[at].after;
    if (next == scratch::none) return;
    if (const auto* both = find(symbols[at].token, symbols[next].token)) {
      heap.push_back({both->rank, at, both->token});
      std::push_heap(heap.begin(), heap.end(), std::greater<>{});
    }
  };
  for (std::uint32_t i = 0; i + 1 < symbols.size(); ++i) offer(i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>{});
    const auto best = heap.back();
    heap.pop_back();
    auto& left = symbols[best.at];
    if (left.gone || left.after == scratch::none) continue;
    auto& right = symbols[left.after];
    // A symbol may have been joined to another one since.
    const auto* both = find(left.token, right.token);
    if (both == nullptr || both->token != best.token) continue;
    left.token = best.token;
    right.gone = true;
    left.after = right.after;
    if (left.after != scratch::none) symbols[left.after].before = best.at;
    if (left.before != scratch::none) offer(left.before);
    offer(best.at);
  }
}

void byte_pairs::encode(const split_text& text, std::vector<token_id>& to) const {
  scratch with;
  for (const auto& each : text.pieces) {
    const auto piece = text.at(each);
    if (ignore_merges_)
      if (const auto whole = tokens_.find(piece)) {
        to.push_back(*whole);
        continue;
      }
    with.symbols.clear();
    with.heap.clear();
    characters(piece, with);
    merge(with);
    for (const auto& symbol : with.symbols)
      if (!symbol.gone) to.push_back(symbol.token);
  }
}

} // namespace shoal::learn
