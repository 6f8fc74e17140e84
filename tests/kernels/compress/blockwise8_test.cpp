#include "kernels/compress/blockwise8.hpp"
#include "kernels/compress/wire.hpp"
#include "tests/kernels/compress/vectors.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace shoal;
using namespace shoal::kernels;

namespace {

std::vector<std::byte> encoded(std::span<const float> x) {
  std::vector<std::byte> bytes(blockwise8_bytes(x.size()));
  REQUIRE(encode_blockwise8(x, bytes).ok());
  return bytes;
}

} // namespace

TEST_CASE("blockwise8: the values are those of the dynamic tree") {
  const auto& values = blockwise8_values();
  CHECK(std::is_sorted(values.begin(), values.end()));
  CHECK(std::adjacent_find(values.begin(), values.end()) == values.end());
  CHECK(values[255] == 1.0F);
  CHECK(values[254] == 0.99296875F);
  CHECK(values[127] == 0.0F);
  CHECK(values[128] ==
        5.5e-7F); // the only value of its decade: the middle of 0.1 and 1, times 1e-6
  CHECK(values[129] == 3.25e-6F);
  CHECK(values[130] == 7.75e-6F);
  CHECK(values[0] == -0.99296875F);
  for (std::size_t c = 0; c < 127; ++c) CHECK(values[c] == -values[254 - c]);
}

TEST_CASE(
    "blockwise8: a block's own largest magnitude scales it, and the last block may be short") {
  std::vector<float> x(4097, -3);
  x[17] = 4;
  x[4096] = 0.5;
  const auto bytes = encoded(x);
  CHECK(bytes.size() == 4097 + 2 * 4);
  CHECK(load<float>(bytes.data(), 0) == 4);
  CHECK(load<float>(bytes.data(), 1) == 0.5F);
  CHECK(bytes[8 + 17] == std::byte{255});
  CHECK(bytes[8 + 4096] == std::byte{255});
}

namespace {

/// x scaled, and the floats beside each, but without magnitudes above that of the first.
std::vector<float> scaled_and_beside(const std::vector<float>& x, float scale) {
  std::vector<float> out;
  for (const float value : x)
    for (const float near : {value * scale, std::nextafter(value * scale, -1e38F),
                             std::nextafter(value * scale, 1e38F)})
      if (std::fabs(near) <= std::fabs(scale)) out.push_back(near);
  return out;
}

} // namespace

TEST_CASE("blockwise8: floats on and beside every middle are rounded as by the reference") {
  const auto& values = blockwise8_values();
  std::vector<float> x{1};
  for (std::size_t c = 0; c + 1 < values.size(); ++c) {
    const float middle = static_cast<float>((double{values[c]} + double{values[c + 1]}) / 2);
    for (const float near :
         {middle, std::nextafter(middle, -2.0F), std::nextafter(middle, 2.0F), values[c]})
      x.push_back(near);
  }
  for (const float scale : {1.0F, -1.0F, 0x1p-120F, 3.0F, 0.0817263F, -3.3333e-5F, 0x1p-100F,
                            0x1.fffffep99F, 0x1.8p101F}) {
    const auto scaled = scaled_and_beside(x, scale);
    REQUIRE(scaled.size() < blockwise8_block);
    std::vector<std::byte> slow(blockwise8_bytes(scaled.size()));
    REQUIRE(encode_blockwise8_reference(scaled, slow).ok());
    CHECK(encoded(scaled) == slow);
  }
}

TEST_CASE(
    "blockwise8: equal to the reference, within the bound, and idempotent where the header says") {
  std::size_t idempotent = 0;
  for (const test_vector& tested : test_vectors()) {
    const std::vector<float>& x = tested.values;
    CAPTURE(tested.name);
    const auto bytes = encoded(x);
    std::vector<std::byte> slow(bytes.size());
    REQUIRE(encode_blockwise8_reference(x, slow).ok());
    REQUIRE(bytes == slow);
    std::vector<float> y(x.size()), z(x.size());
    REQUIRE(decode_blockwise8(bytes, y).ok());
    REQUIRE(decode_blockwise8_reference(bytes, z).ok());
    REQUIRE(same_bits(y, z));

    bool same_again = true;
    for (std::size_t begin = 0; begin < x.size(); begin += blockwise8_block) {
      const std::size_t end = std::min(x.size(), begin + blockwise8_block);
      float most = 0, least = 0;
      for (std::size_t i = begin; i < end; ++i) {
        most = std::max(most, x[i]);
        least = std::min(least, x[i]);
      }
      const double absmax = std::max(most, -least);
      for (std::size_t i = begin; i < end; ++i)
        REQUIRE(std::fabs(double{y[i]} - double{x[i]}) <=
                (0.9 / 128 + 0x1p-22) * absmax + 0x1p-149);
      same_again = same_again && (absmax == 0 || (most == absmax && most >= 0x1p-100F));
    }
    if (same_again) {
      CHECK(encoded(y) == bytes);
      ++idempotent;
    }
  }
  CHECK(idempotent > 20);
  const std::vector<float> negative{-1};
  std::vector<float> back(1);
  REQUIRE(decode_blockwise8(encoded(negative), back).ok());
  CHECK(back[0] == -0.99296875F);
  CHECK(encoded(back) != encoded(negative));
}

TEST_CASE("blockwise8: a scale that no encoder writes is refused") {
  std::vector<float> x(4097, 1), y(4097);
  for (const float bad : {-1.0F, -0.0F, std::nanf(""), std::numeric_limits<float>::infinity()})
    for (const std::size_t block : {0, 1}) {
      auto bytes = encoded(x);
      store(bytes.data(), block, bad);
      CHECK(!decode_blockwise8(bytes, y));
      CHECK(!decode_blockwise8_reference(bytes, y));
    }
}

TEST_CASE(
    "blockwise8: the unsigned code has twice as many values in each decade, and begins with 0") {
  const auto& values = blockwise8_unsigned_values();
  CHECK(std::is_sorted(values.begin(), values.end()));
  CHECK(std::adjacent_find(values.begin(), values.end()) == values.end());
  CHECK(values[0] == 0.0F);
  CHECK(values[1] == 3.25e-7F); // 0.1 + 0.9 / 4, times 1e-6
  CHECK(values[2] == 7.75e-7F);
  CHECK(values[254] == 0.996484375F);
  CHECK(values[255] == 1.0F);
}

TEST_CASE(
    "blockwise8: the unsigned code is equal to its reference, within its bound, and idempotent") {
  const auto& values = blockwise8_unsigned_values();
  std::vector<test_vector> tested = test_vectors();
  std::vector<float> middles{1};
  for (std::size_t c = 0; c + 1 < values.size(); ++c) {
    const float middle = static_cast<float>((double{values[c]} + double{values[c + 1]}) / 2);
    for (const float near :
         {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 2.0F), values[c]})
      middles.push_back(near);
  }
  for (const float scale :
       {1.0F, 0x1p-120F, 3.0F, 0.0817263F, 3.3333e-5F, 0x1p-100F, 0x1.fffffep99F, 0x1.8p101F})
    tested.push_back({"middles", scaled_and_beside(middles, scale)});
  std::size_t idempotent = 0;
  for (auto& [name, x] : tested) {
    CAPTURE(name);
    for (float& value : x) value = std::fabs(value);
    std::vector<std::byte> bytes(blockwise8_bytes(x.size())), slow(bytes.size()),
        again(bytes.size());
    REQUIRE(encode_blockwise8_unsigned(x, bytes).ok());
    REQUIRE(encode_blockwise8_unsigned_reference(x, slow).ok());
    REQUIRE(bytes == slow);
    std::vector<float> y(x.size()), z(x.size());
    REQUIRE(decode_blockwise8_unsigned(bytes, y).ok());
    REQUIRE(decode_blockwise8_unsigned_reference(bytes, z).ok());
    REQUIRE(same_bits(y, z));
    bool same_again = true;
    for (std::size_t begin = 0; begin < x.size(); begin += blockwise8_block) {
      const std::size_t end = std::min(x.size(), begin + blockwise8_block);
      const float most = *std::max_element(x.data() + begin, x.data() + end);
      for (std::size_t i = begin; i < end; ++i)
        REQUIRE(std::fabs(double{y[i]} - double{x[i]}) <=
                (0.9 / 256 + 0x1p-22) * double{most} + 0x1p-149);
      same_again = same_again && (most == 0 || most >= 0x1p-100F);
    }
    if (same_again) {
      REQUIRE(encode_blockwise8_unsigned(y, again).ok());
      CHECK(again == bytes);
      ++idempotent;
    }
  }
  CHECK(idempotent > 40);
}

TEST_CASE("blockwise8: the unsigned code refuses values that it cannot represent") {
  std::vector<std::byte> bytes(blockwise8_bytes(4097));
  for (const float bad :
       {-1.0F, -0.0F, -1e-45F, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    std::vector<float> x(4097, 1);
    x[4096] = bad;
    const auto encoded = encode_blockwise8_unsigned(x, bytes);
    REQUIRE_FALSE(encoded.ok());
    CHECK((encoded.error().find("negative") != std::string::npos) == std::isfinite(bad));
    CHECK_FALSE(encode_blockwise8_unsigned_reference(x, bytes).ok());
  }
}
