#include "kernels/compress/top_k.hpp"
#include "kernels/compress/wire.hpp"
#include "tests/kernels/compress/vectors.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace shoal;
using namespace shoal::kernels;

namespace {

std::vector<float> through(const std::vector<float>& x, std::size_t k) {
  std::vector<std::byte> bytes(top_k_bytes(k));
  REQUIRE(encode_top_k(x, k, bytes).ok());
  std::vector<float> out(x.size(), 7);
  REQUIRE(decode_top_k(bytes, out).ok());
  return out;
}

double squares(std::span<const float> x) {
  double out = 0;
  for (const double value : x) out += value * value;
  return out;
}

} // namespace

TEST_CASE("top_k: the largest magnitudes stay, and of equal ones the first") {
  CHECK(through({3, -5, 1, 4}, 2) == std::vector<float>{0, -5, 0, 4});
  CHECK(through({1, -1, 1, 1}, 2) == std::vector<float>{1, -1, 0, 0});
  CHECK(through({0, 0, 2}, 2) == std::vector<float>{0, 0, 2});
  CHECK(through({3, -5}, 0) == std::vector<float>{0, 0});
  CHECK(through({3, -5}, 2) == std::vector<float>{3, -5});
  CHECK(through({}, 0).empty());
}

TEST_CASE("top_k: equal to the reference and within the bound on all test vectors") {
  for (const auto& [name, x] : test_vectors()) {
    CAPTURE(name);
    for (const std::size_t k :
         {std::size_t{0}, std::size_t{1}, x.size() / 100, x.size() / 2, x.size()}) {
      if (k > x.size()) continue;
      std::vector<std::byte> bytes(top_k_bytes(k)), slow(bytes.size());
      REQUIRE(encode_top_k(x, k, bytes).ok());
      REQUIRE(encode_top_k_reference(x, k, slow).ok());
      REQUIRE(bytes == slow);
      std::vector<float> y(x.size()), missing(x.size());
      REQUIRE(decode_top_k(bytes, y).ok());
      for (std::size_t i = 0; i < x.size(); ++i) {
        REQUIRE((y[i] == 0 || y[i] == x[i]));
        missing[i] = y[i] == x[i] ? 0 : x[i];
      }
      const double part =
          x.empty() ? 0 : 1 - static_cast<double>(k) / static_cast<double>(x.size());
      CHECK(squares(missing) <= part * squares(x) * (1 + 1e-12));
    }
  }
}

TEST_CASE(
    "top_k: with feedback nothing is lost: the sent values and the residual add up to the input") {
  rng random = stream(41, "top_k");
  const std::size_t n = 1000, k = 10;
  std::vector<float> residual(n), sent(n);
  std::vector<double> given(n), received(n);
  std::vector<std::byte> bytes(top_k_bytes(k));
  std::vector<bool> ever(n);
  for (int t = 0; t < 1500; ++t) {
    std::vector<float> x(n);
    for (std::size_t i = 0; i < n; ++i)
      given[i] += x[i] = static_cast<float>(random.normal() * (i % 10 == 0 ? 10 : 1));
    REQUIRE(encode_top_k_with_feedback(x, k, residual, bytes).ok());
    REQUIRE(decode_top_k(bytes, sent).ok());
    for (std::size_t i = 0; i < n; ++i) {
      received[i] += sent[i];
      ever[i] = ever[i] || sent[i] != 0;
    }
  }
  for (std::size_t i = 0; i < n; ++i)
    REQUIRE(received[i] + residual[i] == doctest::Approx(given[i]).epsilon(1e-4));
  // Small values are sent, too, once enough of them have added up.
  CHECK(std::count(ever.begin(), ever.end(), true) > 800);
}

TEST_CASE("top_k: impossible inputs are refused, and the residual is kept") {
  std::vector<std::byte> bytes(top_k_bytes(1));
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    std::vector<float> residual{1, 2};
    CHECK_FALSE(encode_top_k(std::vector<float>{0, bad}, 1, bytes).ok());
    CHECK_FALSE(encode_top_k_reference(std::vector<float>{0, bad}, 1, bytes).ok());
    CHECK_FALSE(encode_top_k_with_feedback(std::vector<float>{0, bad}, 1, residual, bytes).ok());
    CHECK(residual == std::vector<float>{1, 2});
  }
  const float most = std::numeric_limits<float>::max();
  std::vector<float> residual{most, 0};
  CHECK_FALSE(encode_top_k_with_feedback(std::vector<float>{most, 0}, 1, residual, bytes)
                  .ok()); // the sum is infinite
  CHECK(residual[0] == most);
  std::vector<std::byte> more(top_k_bytes(3));
  CHECK(encode_top_k(std::vector<float>{1, 2}, 3, more).error() ==
        "the 3 largest of 2 values do not exist");
}

TEST_CASE("top_k: bytes that no encoder writes are refused") {
  const std::vector<float> x{3, -5, 1, 4};
  std::vector<std::byte> bytes(top_k_bytes(2));
  REQUIRE(encode_top_k(x, 2, bytes).ok());
  std::vector<float> y(4);
  CHECK_FALSE(decode_top_k(std::span(bytes).first(15), y).ok());
  CHECK_FALSE(decode_top_k(bytes, std::span(y).first(1)).ok());
  CHECK_FALSE(decode_top_k(bytes, std::span(y).first(3)).ok());
  auto twice = bytes;
  store(twice.data(), 1, std::uint32_t{1});
  CHECK_FALSE(decode_top_k(twice, y).ok());
  auto infinite = bytes;
  store(infinite.data(), 3, std::numeric_limits<float>::infinity());
  CHECK_FALSE(decode_top_k(infinite, y).ok());
}
