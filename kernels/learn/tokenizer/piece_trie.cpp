#include "kernels/learn/tokenizer/piece_trie.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/tokenizer/unicode.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace shoal::learn {

piece_trie::piece_trie(std::span<const std::u32string> pieces) {
  // Frequent code points get small numbers, so that most children of a node lie together.
  std::map<char32_t, std::size_t> counts;
  for (const auto& each : pieces)
    for (const auto c : each) ++counts[c];
  std::vector<std::pair<std::size_t, char32_t>> order;
  order.reserve(counts.size());
  for (const auto& [c, n] : counts) order.emplace_back(n, c);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  SHOAL_CHECK(order.size() < 0xffff, "a vocabulary has less than 65,535 different characters");
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto c = order[i].second;
    const auto number = static_cast<std::uint16_t>(i + 1);
    if (c > 0xffff) {
      far_[c] = number;
      continue;
    }
    if (c >= symbols_.size()) symbols_.resize(c + 1);
    symbols_[c] = number;
  }

  std::vector<std::vector<symbol>> keys(pieces.size());
  std::vector<std::uint32_t> sorted(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i)
    for (const auto c : pieces[i]) keys[i].push_back(symbol_of(c));
  std::iota(sorted.begin(), sorted.end(), 0u);
  std::erase_if(sorted, [&](std::uint32_t i) { return keys[i].empty(); });
  std::sort(sorted.begin(), sorted.end(), [&](std::uint32_t a, std::uint32_t b) {
    return keys[a] != keys[b] ? keys[a] < keys[b] : a < b;
  });

  nodes_.assign(order.size() + 2, {});
  nodes_[0].parent = 0;
  // The keys [begin, end) share their first `depth` symbols, which lead to `node`.
  struct task {
    std::size_t begin, end, depth;
    std::uint32_t node;
  };
  std::vector<task> tasks{{0, sorted.size(), 0, 0}};
  std::vector<std::pair<symbol, std::size_t>> children; // first key of each
  std::size_t first_free = 1;
  while (!tasks.empty()) {
    auto [begin, end, depth, node] = tasks.back();
    tasks.pop_back();
    while (begin < end && keys[sorted[begin]].size() == depth)
      nodes_[node].value = static_cast<std::int32_t>(sorted[begin++]);
    if (begin == end) continue;
    children.clear();
    for (auto i = begin; i < end; ++i)
      if (const auto c = keys[sorted[i]][depth]; children.empty() || children.back().first != c)
        children.emplace_back(c, i);

    while (first_free < nodes_.size() && nodes_[first_free].parent != unused) ++first_free;
    // Places are tried from the first free one. A crowded beginning is given up.
    const auto lowest = children.front().first;
    std::size_t at = std::max<std::size_t>(first_free, lowest), tried = 0;
    for (;; ++at) {
      const auto base = at - lowest;
      if (const auto needed = base + children.back().first + 1; needed > nodes_.size())
        nodes_.resize(needed + needed / 4);
      if (std::all_of(children.begin(), children.end(), [&](const auto& child) {
            return base + child.first != 0 && nodes_[base + child.first].parent == unused;
          }))
        break;
      if (++tried == 512) first_free = std::max(first_free, at - 256);
    }
    SHOAL_CHECK(at < unused / 2, "a trie has less than 2^31 nodes");
    const auto base = static_cast<std::uint32_t>(at - lowest);
    nodes_[node].base = base;
    for (std::size_t i = 0; i < children.size(); ++i) {
      const auto child = base + children[i].first;
      nodes_[child].parent = node;
      tasks.push_back({children[i].second, i + 1 < children.size() ? children[i + 1].second : end,
                       depth + 1, child});
    }
  }
  while (nodes_.size() > 1 && nodes_.back().parent == unused) nodes_.pop_back();
}

void piece_trie::translate(std::string_view text, std::vector<symbol>& to,
                           std::vector<std::uint32_t>* offsets) const {
  unicode::for_each(text, [&](char32_t c, std::size_t at, unsigned) {
    to.push_back(symbol_of(c));
    if (offsets != nullptr) offsets->push_back(static_cast<std::uint32_t>(at));
  });
}

} // namespace shoal::learn
