// kernels/compress/float16 and bfloat16: all their values, and the floats on, beside and between
// them.
#include "kernels/compress/bfloat16.hpp"
#include "kernels/compress/float16.hpp"
#include "kernels/compress/wire.hpp"
#include "tests/kernels/compress/vectors.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace shoal;
using namespace shoal::kernels;

namespace {

struct format {
  const char* name;
  result<void> (*encode)(std::span<const float>, std::span<std::byte>);
  result<void> (*decode)(std::span<const std::byte>, std::span<float>);
  result<void> (*encode_reference)(std::span<const float>, std::span<std::byte>);
  result<void> (*decode_reference)(std::span<const std::byte>, std::span<float>);
  std::uint32_t infinity;
};
constexpr format formats[] = {
    {"float16", encode_float16, decode_float16, encode_float16_reference, decode_float16_reference,
     0x7c00},
    {"bfloat16", encode_bfloat16, decode_bfloat16, encode_bfloat16_reference,
     decode_bfloat16_reference, 0x7f80},
};

std::uint16_t one(const format& f, float x) {
  std::vector<std::byte> bytes(2);
  REQUIRE(f.encode(std::span(&x, 1), bytes).ok());
  return load<std::uint16_t>(bytes.data(), 0);
}

} // namespace

TEST_CASE("16-bit floats: known values") {
  const format &half = formats[0], &brain = formats[1];
  CHECK(one(half, 1) == 0x3c00);
  CHECK(one(half, -2) == 0xc000);
  CHECK(one(half, 65504) == 0x7bff);
  CHECK(one(half, 65520) == 0x7bff);
  CHECK(one(half, -1e30F) == 0xfbff);
  CHECK(one(half, 0x1p-24F) == 0x0001);
  CHECK(one(half, 0x1p-25F) == 0x0000); // a tie, to the even one
  CHECK(one(half, 0x1.000002p-25F) == 0x0001);
  CHECK(one(half, 1 + 0x1p-11F) == 0x3c00);
  CHECK(one(half, 1 + 0x3p-11F) == 0x3c02);
  CHECK(one(half, -0.0F) == 0x8000);
  CHECK(one(brain, 1) == 0x3f80);
  CHECK(one(brain, 1 + 0x1p-8F) == 0x3f80);
  CHECK(one(brain, 1 + 0x3p-8F) == 0x3f82);
  CHECK(one(brain, std::numeric_limits<float>::max()) == 0x7f7f);
  CHECK(one(brain, std::numeric_limits<float>::lowest()) == 0xff7f);
}

TEST_CASE("16-bit floats: every finite value comes back, and infinities and NaN are refused") {
  for (const format& f : formats)
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
      std::vector<std::byte> bytes(2), again(2);
      store(bytes.data(), 0, static_cast<std::uint16_t>(bits));
      float fast = 0, slow = 0;
      const bool finite = (bits & 0x7fffU) < f.infinity;
      REQUIRE(f.decode(bytes, std::span(&fast, 1)).ok() == finite);
      REQUIRE(f.decode_reference(bytes, std::span(&slow, 1)).ok() == finite);
      if (!finite) continue;
      REQUIRE(same_bits(std::span(&fast, 1), std::span(&slow, 1)));
      REQUIRE(f.encode(std::span(&fast, 1), again).ok());
      REQUIRE(again == bytes);
    }
}

TEST_CASE("16-bit floats: the middles between neighbours and the floats beside them are rounded as "
          "by the reference") {
  for (const format& f : formats) {
    CAPTURE(f.name);
    std::vector<float> x;
    for (std::uint32_t bits = 0; bits + 1 < f.infinity; ++bits) {
      std::vector<std::byte> bytes(4);
      store(bytes.data(), 0, static_cast<std::uint16_t>(bits));
      store(bytes.data(), 1, static_cast<std::uint16_t>(bits + 1));
      float pair[2];
      REQUIRE(f.decode(bytes, std::span(pair)).ok());
      const float middle = static_cast<float>((double{pair[0]} + double{pair[1]}) / 2);
      for (const float near :
           {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e38F)}) {
        x.push_back(near);
        x.push_back(-near);
      }
    }
    std::vector<std::byte> fast(2 * x.size()), slow(2 * x.size());
    REQUIRE(f.encode(x, fast).ok());
    REQUIRE(f.encode_reference(x, slow).ok());
    CHECK(fast == slow);
  }
}

TEST_CASE("16-bit floats: equal to the reference and within the bound") {
  for (const format& f : formats)
    for (const test_vector& tested : test_vectors()) {
      const std::vector<float>& x = tested.values;
      CAPTURE(f.name);
      CAPTURE(tested.name);
      std::vector<std::byte> fast(2 * x.size()), slow(2 * x.size());
      REQUIRE(f.encode(x, fast).ok());
      REQUIRE(f.encode_reference(x, slow).ok());
      REQUIRE(fast == slow);
      std::vector<float> y(x.size()), z(x.size());
      REQUIRE(f.decode(fast, y).ok());
      REQUIRE(f.decode_reference(fast, z).ok());
      REQUIRE(same_bits(y, z));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double magnitude = std::fabs(double{x[i]}),
                     error = std::fabs(double{y[i]} - double{x[i]});
        if (f.infinity == 0x7f80)
          REQUIRE(error <= std::max(0x1p-8 * magnitude, 0x1p-134));
        else if (magnitude > 65504)
          REQUIRE(error <= magnitude - 65504);
        else
          REQUIRE(error <= std::max(magnitude < 0x1p-14 ? 0 : 0x1p-11 * magnitude, 0x1p-25));
        REQUIRE(std::signbit(x[i]) == std::signbit(y[i]));
      }
      std::vector<std::byte> again(fast.size());
      REQUIRE(f.encode(y, again).ok());
      REQUIRE(again == fast);
    }
}
