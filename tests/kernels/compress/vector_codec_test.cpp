#include "kernels/base/rng.hpp"
#include "kernels/compress/top_k.hpp"
#include "kernels/compress/vector_codec.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace shoal;
using namespace shoal::kernels;

namespace {

std::vector<float> normal(std::uint64_t seed, std::size_t n) {
  rng random = stream(seed, "vector_codec");
  std::vector<float> out(n);
  for (float& value : out) value = static_cast<float>(random.normal());
  return out;
}

} // namespace

TEST_CASE("vector_codec: top_k keeps its share of each piece, at least one value") {
  const vector_codec codec(codec::top_k, {}, 0.05);
  CHECK(codec.drops_values());
  CHECK_FALSE(vector_codec(codec::blockwise8).drops_values());
  for (const auto& [n, kept] :
       {std::pair<std::size_t, std::size_t>{0, 0}, {1, 1}, {7, 1}, {20, 1}, {21, 2}, {1000, 50}}) {
    const auto x = normal(n, n);
    const auto bytes = codec.encode(17, x);
    REQUIRE(bytes.ok());
    CHECK(bytes->size() == top_k_bytes(kept));
    CHECK(codec.bytes(17, n) == bytes->size());
    std::vector<float> y(n);
    REQUIRE(codec.decode(17, *bytes, y).ok());
    CHECK(static_cast<std::size_t>(
              std::count_if(y.begin(), y.end(), [](float value) { return value != 0; })) == kept);
    for (std::size_t i = 0; i < n; ++i) CHECK((y[i] == 0 || y[i] == x[i]));
    // The dropped values are the same again, so a second encoding loses nothing more.
    CHECK(*codec.encode(17, y) == *bytes);
  }
  const auto x = normal(1, 100);
  const vector_codec all(codec::top_k, {}, 1);
  std::vector<float> y(100);
  REQUIRE(all.decode(0, *all.encode(0, x), y).ok());
  CHECK(y == x);
}

TEST_CASE("vector_codec: a reader of top_k accepts any number of values that a piece can hold, and "
          "exact lengths of other codecs") {
  const vector_codec codec(codec::top_k, {}, 0.05);
  CHECK(codec.fits(0, 100, top_k_bytes(5)));
  CHECK(codec.fits(0, 100, top_k_bytes(100)));
  CHECK_FALSE(codec.fits(0, 100, 0));
  CHECK_FALSE(codec.fits(0, 100, top_k_bytes(101)));
  CHECK_FALSE(codec.fits(0, 100, top_k_bytes(5) + 4));
  CHECK(codec.fits(0, 0, 0));
  const std::uint64_t tensors[] = {size_adaptive_threshold, 10};
  const vector_codec adaptive(codec::size_adaptive, tensors);
  for (const std::uint64_t begin : {std::uint64_t{0}, std::uint64_t{size_adaptive_threshold - 7}}) {
    CHECK(adaptive.fits(begin, 10, adaptive.bytes(begin, 10)));
    CHECK_FALSE(adaptive.fits(begin, 10, adaptive.bytes(begin, 10) + 8));
  }
}
