#include "kernels/base/hash_tree.hpp"

#include "kernels/base/check.hpp"

#include <utility>

namespace shoal {

namespace {

enum class tag : std::uint8_t { item, node, root };

/// The nodes above `below`, whose first one is a left child.
std::vector<digest> parents_of(std::span<const digest> below) {
  std::vector<digest> out;
  out.reserve((below.size() + 1) / 2);
  for (std::size_t i = 0; i < below.size(); i += 2)
    out.push_back(hasher()
                      .add(tag::node)
                      .add(below[i])
                      .add(i + 1 < below.size() ? below[i + 1] : digest{})
                      .finish());
  return out;
}

digest root_over(std::uint64_t size, const digest& top) {
  return hasher().add(tag::root).add(size).add(top).finish();
}

} // namespace

digest hash_tree::item(std::span<const std::byte> bytes) {
  return hasher().add(tag::item).add(bytes).finish();
}

hash_tree::hash_tree(std::vector<digest> items) {
  SHOAL_CHECK(!items.empty(), "a hash tree has items");
  levels_.push_back(std::move(items));
  while (levels_.back().size() > 1) levels_.push_back(parents_of(levels_.back()));
  root_ = root_over(size(), levels_.back().front());
}

std::vector<digest> hash_tree::proof(std::uint64_t first, std::uint64_t count) const {
  SHOAL_CHECK(count > 0 && first < size() && count <= size() - first, "a range of the tree");
  std::vector<digest> out;
  auto last = first + count - 1;
  for (const auto& level : levels_) {
    if (first % 2 == 1) out.push_back(level[first - 1]);
    if (last % 2 == 0 && last + 1 < level.size()) out.push_back(level[last + 1]);
    first /= 2;
    last /= 2;
  }
  return out;
}

bool hash_tree::proves(std::uint64_t size, const digest& root, std::uint64_t first,
                       std::vector<digest> items, std::span<const digest> proof) {
  if (items.empty() || first >= size || items.size() > size - first) return false;
  std::size_t used = 0;
  for (auto width = size; width > 1; width = (width + 1) / 2, first /= 2) {
    const auto last = first + items.size() - 1;
    const bool left = first % 2 == 1, right = last % 2 == 0 && last + 1 < width;
    if (proof.size() - used < std::size_t{left} + std::size_t{right}) return false;
    if (left) items.insert(items.begin(), proof[used++]);
    if (right) items.push_back(proof[used++]);
    items = parents_of(items);
  }
  return used == proof.size() && root == root_over(size, items.front());
}

} // namespace shoal
