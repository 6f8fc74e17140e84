#include "kernels/compress/uniform8.hpp"
#include "kernels/compress/wire.hpp"
#include "tests/kernels/compress/vectors.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace shoal;
using namespace shoal::kernels;

namespace {

std::vector<std::byte> encoded(std::span<const float> x) {
  std::vector<std::byte> bytes(uniform8_bytes(x.size()));
  REQUIRE(encode_uniform8(x, bytes).ok());
  return bytes;
}

std::vector<float> decoded(std::span<const std::byte> bytes, std::size_t n) {
  std::vector<float> out(n);
  REQUIRE(decode_uniform8(bytes, out).ok());
  return out;
}

} // namespace

TEST_CASE("uniform8: two values, by hand") {
  // mu 0, sd sqrt(2), scale 0.0331: -1 is 30 buckets below the middle, 1 as many above.
  const auto bytes = encoded(std::vector<float>{-1, 1});
  CHECK(bytes.size() == 1026);
  CHECK(bytes[1024] == std::byte{128 - 30});
  CHECK(bytes[1025] == std::byte{128 + 30});
  CHECK(load<float>(bytes.data(), 98) == -1);
  CHECK(load<float>(bytes.data(), 158) == 1);
  CHECK(load<float>(bytes.data(), 128) == 0);
}

TEST_CASE("uniform8: equal to the reference and within the bound") {
  for (const test_vector& tested : test_vectors()) {
    const std::vector<float>& x = tested.values;
    CAPTURE(tested.name);
    const auto n = static_cast<double>(x.size());
    const auto bytes = encoded(x);
    std::vector<std::byte> slow(bytes.size());
    REQUIRE(encode_uniform8_reference(x, slow).ok());
    REQUIRE(bytes == slow);
    const auto y = decoded(bytes, x.size());
    std::vector<float> z(x.size());
    REQUIRE(decode_uniform8_reference(bytes, z).ok());
    REQUIRE(same_bits(y, z));
    if (x.empty()) continue;

    double mu = 0, squares = 0, largest = 0, farthest = 0;
    for (const float value : x) mu += double{value} / n;
    for (const float value : x) {
      squares += (value - mu) * (value - mu);
      largest = std::max(largest, std::fabs(double{value}));
      farthest = std::max(farthest, std::fabs(value - mu));
    }
    const double scale = x.size() > 1 ? 6 * std::sqrt(squares / (n - 1)) / 256 : 0;
    const double rounding = (0x1p-24 + n * 0x1p-52) * largest + 0x1p-149;
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto q = load<std::uint8_t>(bytes.data() + 1024, i);
      const double width = q == 0 || q == 255 ? farthest - 126 * scale : scale * (1 + 0x1p-40);
      REQUIRE(std::fabs(double{y[i]} - double{x[i]}) <= width + rounding);
      sum += y[i];
    }
    CHECK(std::fabs(sum / n - mu) <= rounding + n * 0x1p-52 * largest);
  }
}

TEST_CASE("uniform8: a normal vector loses a twelfth of a bucket's squared width inside, and more "
          "in the tails") {
  rng random = stream(3, "normal");
  std::vector<float> x(1 << 16);
  for (float& value : x) value = static_cast<float>(random.normal(5, 2));
  const auto bytes = encoded(x);
  const auto y = decoded(bytes, x.size());
  double inside = 0, tails = 0, number_inside = 0, number_in_tails = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double square = (double{x[i]} - double{y[i]}) * (double{x[i]} - double{y[i]});
    const auto q = load<std::uint8_t>(bytes.data() + 1024, i);
    const bool tail = q == 0 || q == 255;
    (tail ? tails : inside) += square;
    (tail ? number_in_tails : number_inside) += 1;
  }
  const double width = 6 * 2 / 256.0;
  CHECK(inside / number_inside == doctest::Approx(width * width / 12).epsilon(0.05));
  CHECK(number_in_tails / static_cast<double>(x.size()) == doctest::Approx(0.0028).epsilon(0.2));
  // Beyond three sd a normal variable has the variance 0.070 sd^2, of which one mean leaves all.
  CHECK(tails / number_in_tails == doctest::Approx(0.07 * 2 * 2).epsilon(0.4));
}

TEST_CASE("uniform8: idempotent for equal values, and not in general") {
  const std::vector<float> equal(777, 0.1F);
  CHECK(decoded(encoded(equal), 777) == equal);
  rng random = stream(4, "normal");
  std::vector<float> x(1000);
  for (float& value : x) value = static_cast<float>(random.normal());
  CHECK(encoded(decoded(encoded(x), x.size())) != encoded(x));
}

TEST_CASE("uniform8: a codebook that is not finite is refused, also in unused buckets") {
  const std::vector<float> x{1, 2, 3};
  std::vector<float> y(3, 7);
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()})
    for (const std::size_t bucket : {0, 128, 255}) {
      auto bytes = encoded(x);
      store(bytes.data(), bucket, bad);
      CHECK(!decode_uniform8(bytes, y));
      CHECK(!decode_uniform8_reference(bytes, y));
    }
  CHECK(y == std::vector<float>(3, 7));
}
