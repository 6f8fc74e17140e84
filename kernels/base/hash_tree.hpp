// A binary tree of digests over a list of items (a Merkle tree). The root stands for all items. A
// receiver that knows the root checks any range of items with about log2(size) digests per end.
//
//   item:  hash(0, bytes)      node: hash(1, left, right)      root: hash(2, size, top)
//
// A level has half as many nodes as the one below it, rounded up. The node that lacks a right
// child has a zero digest there. The first byte keeps an item from being taken for a node.
// Source: Merkle, "A digital signature based on a conventional encryption function", CRYPTO 1987;
// the first byte is that of RFC 9162, section 2.1.
#pragma once

#include "kernels/base/digest.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal {

class hash_tree {
public:
  static digest item(std::span<const std::byte> bytes);

  /// Requires: there are items, given by item().
  /// Complexity: one hash for each item, and 64 bytes of memory.
  explicit hash_tree(std::vector<digest> items);

  std::uint64_t size() const noexcept { return levels_.front().size(); }
  const digest& root() const noexcept { return root_; }

  /// The digests beside the items [first, first + count), from the lowest level up, left before
  /// right. Requires: 0 < count, first + count <= size().
  std::vector<digest> proof(std::uint64_t first, std::uint64_t count) const;

  /// True if `items` are the items from `first` on of the tree with this size and root. False for
  /// any range that such a tree does not have, and for a proof of another length.
  /// Complexity: items + 2 log2(size) hashes.
  static bool proves(std::uint64_t size, const digest& root, std::uint64_t first,
                     std::vector<digest> items, std::span<const digest> proof);

private:
  std::vector<std::vector<digest>> levels_; // the items first
  digest root_;
};

} // namespace shoal
