#include "actors/inference/activations.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace shoal;
using namespace shoal::actors;

namespace {

std::vector<float> normal(std::size_t n) {
  std::vector<float> out(n);
  auto random = stream(3, "activations");
  for (auto& each : out) each = static_cast<float>(3 * random.normal());
  return out;
}

const kernels::codec all[] = {kernels::codec::none, kernels::codec::float16,
                              kernels::codec::bfloat16, kernels::codec::blockwise8};

} // namespace

TEST_CASE("activations come back within the bound of their codec") {
  constexpr std::size_t width = 64, rows = 5;
  const auto values = normal(rows * width);
  for (const auto codec : all) {
    const auto packed = pack_activations(codec, values, width);
    REQUIRE(packed.ok());
    const auto back = unpack_activations(codec, *packed, rows, width);
    REQUIRE(back.ok());
    for (std::size_t r = 0; r < rows; ++r) {
      double most = 0;
      for (std::size_t i = 0; i < width; ++i)
        most = std::max(most, std::abs(static_cast<double>(values[r * width + i])));
      for (std::size_t i = 0; i < width; ++i)
        CHECK(std::abs(static_cast<double>((*back)[r * width + i] - values[r * width + i])) <=
              kernels::largest_loss(codec) * most + kernels::smallest_loss(codec));
    }
  }
}

TEST_CASE("a row has the same bytes alone and together with others") {
  constexpr std::size_t width = 48;
  const auto values = normal(3 * width);
  for (const auto codec : all) {
    const auto together = pack_activations(codec, values, width).value();
    const std::vector<float> second(values.begin() + width, values.begin() + 2 * width);
    const auto alone = pack_activations(codec, second, width).value();
    CHECK(std::ranges::equal(alone.bytes(), together.bytes().subspan(alone.size(), alone.size())));
  }
}

TEST_CASE("bytes that are no activations are refused") {
  CHECK(!unpack_activations(kernels::codec::none, payload{std::vector<float>(3)}, 1, 4).ok());
  CHECK(!unpack_activations(kernels::codec::none, payload::size_only(16), 1, 4).ok());
  CHECK(!unpack_activations(kernels::codec::blockwise8, payload{std::vector<float>(4)}, 1, 4).ok());
  CHECK(!unpack_activations(kernels::codec::none, payload{std::vector<float>{1, NAN, 3, 4}}, 1, 4)
             .ok());
  CHECK(!pack_activations(kernels::codec::none, {1, INFINITY}, 2).ok());
  CHECK(activation_codec(0) == kernels::codec::none);
  CHECK(!activation_codec(static_cast<std::uint8_t>(kernels::codec::top_k)));
  CHECK(!activation_codec(200));
}
