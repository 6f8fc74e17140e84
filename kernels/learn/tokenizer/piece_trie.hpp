// All pieces of a vocabulary that begin at one place of a text: a trie over code points, in a
// double array. Code points get dense numbers, so a step costs two look-ups.
//   child of node s along number c: t = base[s] + c, if check[t] == s
// Source: Aoe, "An Efficient Digital Search Algorithm by Using a Double-Array Structure", IEEE
// Transactions on Software Engineering 15 (1989).
// Thread safety: immutable after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shoal::learn {

class piece_trie {
public:
  using symbol = std::uint32_t; ///< the dense number of a code point; 0: in no piece

  /// Value i belongs to pieces[i]. The last one of equal pieces counts; empty ones are left out.
  /// Complexity: O(total code points), and O(n log n) for sorting.
  explicit piece_trie(std::span<const std::u32string> pieces);

  symbol symbol_of(char32_t c) const noexcept {
    if (c < symbols_.size()) return symbols_[c];
    const auto found = far_.find(c);
    return found == far_.end() ? 0 : found->second;
  }
  /// Appends the symbols of `text`, and their offsets in bytes if `offsets` is not null.
  void translate(std::string_view text, std::vector<symbol>& to,
                 std::vector<std::uint32_t>* offsets) const;

  /// Calls `each(length, value)` for each piece at the beginning of `text`, the shortest first.
  template <class Each>
  void prefixes(std::span<const symbol> text, Each each) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == 0) return;
      const auto& from = nodes_[node];
      const auto next = from.base + text[i];
      if (next >= nodes_.size() || nodes_[next].parent != node) return;
      node = next;
      if (nodes_[node].value >= 0) each(i + 1, nodes_[node].value);
    }
  }

private:
  static constexpr std::uint32_t unused = 0xffffffff;
  struct node {
    std::uint32_t base = 0, parent = unused;
    std::int32_t value = -1;
  };

  std::vector<std::uint16_t> symbols_;              ///< [highest near code point + 1]
  std::unordered_map<char32_t, std::uint16_t> far_; ///< code points above U+FFFF
  std::vector<node> nodes_;
};

} // namespace shoal::learn
