// actors/data/corpus: what a receiver finds out about the samples of a fixed corpus.
#include "actors/data/corpus.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

using namespace shoal;
using namespace shoal::actors;

namespace {

/// Sample i is the number 1000 i, in 8 bytes.
struct numbers final : sample_source {
  std::uint32_t sample_bytes() const override { return 8; }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    index *= 1000;
    std::memcpy(out.data(), &index, sizeof index);
  }
};

std::shared_ptr<const corpus> ten(std::uint64_t first = 0) {
  const auto source = std::make_shared<const numbers>();
  return std::make_shared<const corpus>(source, tree_of(*source, 10), first);
}

payload read(const corpus& from, const sample_range& range) {
  std::vector<std::byte> out(8 * range.count);
  for (std::uint32_t i = 0; i < range.count; ++i)
    from.read(range.first + i, std::span(out).subspan(8 * i, 8));
  return payload{std::move(out)};
}

} // namespace

TEST_CASE("corpus: samples repeat after the last one, and each range has its proof") {
  for (const std::uint64_t first : {0u, 7u, 23u}) {
    const auto all = ten(first);
    const auto root = all->root();
    CAPTURE(first);
    for (std::uint64_t index = 0; index < 25; ++index)
      for (std::uint32_t count = 1; count <= all->left_at(index); ++count) {
        const sample_range range{index, count};
        const auto bytes = read(*all, range), proof = all->proof_of(range);
        std::uint64_t number = 0;
        std::memcpy(&number, bytes.bytes().data(), 8);
        REQUIRE(number == (index + first) % 10 * 1000);
        REQUIRE(root.has(range, bytes, proof));
        REQUIRE(!root.has({index + 1, count}, bytes, proof));
        REQUIRE(root.has({index + 10, count}, bytes, proof)); // the same samples again
      }
  }
  // An index near the end of 64 bits does not wrap around zero.
  const auto far = ~std::uint64_t{0} - 3;
  CHECK(ten(23)->root().sample_of(far) == (far % 10 + 3) % 10);
}

TEST_CASE("corpus: changed bytes, lengths and payloads without bytes have no proof") {
  const auto all = ten();
  const auto root = all->root();
  const sample_range range{2, 3};
  const auto right = read(*all, range), proof = all->proof_of(range);
  REQUIRE(root.has(range, right, proof));
  for (std::size_t i = 0; i < right.size(); ++i) {
    std::vector<std::byte> changed(right.bytes().begin(), right.bytes().end());
    changed[i] ^= std::byte{1};
    CHECK(!root.has(range, payload{std::move(changed)}, proof));
  }
  std::vector<std::byte> swapped(right.bytes().begin(), right.bytes().end());
  std::swap_ranges(swapped.begin(), swapped.begin() + 8, swapped.begin() + 8);
  CHECK(!root.has(range, payload{std::move(swapped)}, proof));
  CHECK(!root.has({2, 0}, {}, proof));
  CHECK(!root.has({2, 2}, right, proof));
  CHECK(!root.has(range, right.slice(0, 23), proof));
  CHECK(!root.has(range, payload::size_only(24), proof));
  CHECK(!root.has(range, right, payload::size_only(proof.size())));
  CHECK(!root.has(range, right, proof.slice(0, proof.size() - 1)));
  CHECK(!root.has(range, right, proof.slice(0, proof.size() - 32)));
  CHECK(!root.has(range, right, {}));
  // No range passes the end of the corpus.
  CHECK(!root.has({9, 2}, read(*all, {9, 2}), all->proof_of({9, 1})));
}
