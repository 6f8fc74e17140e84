#include "kernels/base/hash_tree.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using namespace shoal;

namespace {

std::vector<digest> items_of(std::uint64_t count) {
  std::vector<digest> out;
  for (std::uint64_t i = 0; i < count; ++i)
    out.push_back(hash_tree::item(std::as_bytes(std::span(&i, 1))));
  return out;
}

std::vector<digest> part(const std::vector<digest>& all, std::uint64_t first, std::uint64_t count) {
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {from, from + static_cast<std::ptrdiff_t>(count)};
}

} // namespace

TEST_CASE("hash tree: every range of every small tree has a proof, which holds nowhere else") {
  for (std::uint64_t size = 1; size <= 19; ++size) {
    const auto all = items_of(size);
    const hash_tree tree(all);
    CAPTURE(size);
    for (std::uint64_t first = 0; first < size; ++first)
      for (std::uint64_t count = 1; first + count <= size; ++count) {
        const auto proof = tree.proof(first, count);
        const auto items = part(all, first, count);
        CAPTURE(first);
        CAPTURE(count);
        REQUIRE(hash_tree::proves(size, tree.root(), first, items, proof));
        for (std::uint64_t other = 0; other <= size; ++other)
          if (other != first) REQUIRE(!hash_tree::proves(size, tree.root(), other, items, proof));
        REQUIRE(!hash_tree::proves(size + 1, tree.root(), first, items, proof));
        for (std::size_t i = 0; i < items.size(); ++i) {
          auto changed = items;
          changed[i].bytes[7] ^= 1;
          REQUIRE(!hash_tree::proves(size, tree.root(), first, changed, proof));
        }
        for (std::size_t i = 0; i < proof.size(); ++i) {
          auto changed = proof;
          changed[i].bytes[0] ^= 1;
          REQUIRE(!hash_tree::proves(size, tree.root(), first, items, changed));
        }
      }
  }
}

TEST_CASE("hash tree: a proof with a digest more or less holds for nothing") {
  const auto all = items_of(100);
  const hash_tree tree(all);
  auto proof = tree.proof(37, 20);
  const auto items = part(all, 37, 20);
  // Each of the seven levels adds at most one digest on each side.
  CHECK(proof.size() <= 14);
  proof.push_back(digest{});
  CHECK(!hash_tree::proves(100, tree.root(), 37, items, proof));
  proof.resize(proof.size() - 2);
  CHECK(!hash_tree::proves(100, tree.root(), 37, items, proof));
  CHECK(!hash_tree::proves(100, tree.root(), 37, items, {}));
  CHECK(!hash_tree::proves(100, tree.root(), 37, {}, tree.proof(37, 20)));
  CHECK(!hash_tree::proves(0, tree.root(), 0, items, {}));
}

TEST_CASE("hash tree: a node is no item") {
  // The parent of two items, given as the only item of a tree of one.
  const auto all = items_of(2);
  const hash_tree two(all);
  const auto node = hasher().add(std::uint8_t{1}).add(all[0]).add(all[1]).finish();
  CHECK(!hash_tree::proves(1, two.root(), 0, {node}, {}));
  CHECK(hash_tree::proves(2, two.root(), 0, all, {}));
}
