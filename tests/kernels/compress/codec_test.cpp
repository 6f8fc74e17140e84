// kernels/compress/codec: the properties of all codecs.
#include "kernels/compress/codec.hpp"
#include "kernels/compress/wire.hpp"
#include "tests/kernels/compress/vectors.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace shoal;
using namespace shoal::kernels;

TEST_CASE("codecs: names read back as written, and other names are refused with the list") {
  for (const codec which : all_codecs) CHECK(parse_codec(to_string(which)).value() == which);
  CHECK(parse_codec("float8").error() == "'float8' is not a codec; there are none, float16, "
                                         "bfloat16, uniform8, blockwise8, size_adaptive");
  CHECK(!parse_codec(""));
}

TEST_CASE("codecs: sizes are exact") {
  CHECK(encoded_bytes(codec::none, 10) == 40);
  CHECK(encoded_bytes(codec::float16, 10) == 20);
  CHECK(encoded_bytes(codec::bfloat16, 10) == 20);
  CHECK(encoded_bytes(codec::uniform8, 10) == 1034);
  CHECK(encoded_bytes(codec::blockwise8, 10) == 14);
  CHECK(encoded_bytes(codec::blockwise8, 4096) == 4100);
  CHECK(encoded_bytes(codec::blockwise8, 4097) == 4105);
  CHECK(encoded_bytes(codec::size_adaptive, 65535) == 131070);
  CHECK(encoded_bytes(codec::size_adaptive, 65536) == 65536 + 16 * 4);
  for (const codec which : all_codecs) CHECK(encoded_bytes(which, 0) == 0);
}

TEST_CASE("codecs: the same input gives the same bytes of the announced size, at every address") {
  for (const codec which : all_codecs)
    for (const test_vector& tested : test_vectors()) {
      const std::vector<float>& x = tested.values;
      CAPTURE(to_string(which));
      CAPTURE(tested.name);
      const auto bytes = encode(which, x).value();
      REQUIRE(bytes.size() == encoded_bytes(which, x.size()));
      std::vector<float> shifted(x.size() + 1);
      std::copy(x.begin(), x.end(), shifted.begin() + 1);
      REQUIRE(encode(which, std::span(shifted).subspan(1)).value() == bytes);
      // Bytes come from the middle of messages, so unaligned ones are decoded in the same way.
      std::vector<std::byte> odd(bytes.size() + 1);
      std::copy(bytes.begin(), bytes.end(), odd.begin() + 1);
      std::vector<float> y(x.size()), z(x.size());
      REQUIRE(decode(which, bytes, y).ok());
      REQUIRE(decode(which, std::span<const std::byte>(odd).subspan(1), z).ok());
      REQUIRE(same_bits(y, z));
      for (const float value : y) REQUIRE(std::isfinite(value));
      if (which == codec::none) REQUIRE(same_bits(x, y));
      if (which == codec::size_adaptive)
        REQUIRE(encode(codec_for(which, x.size()), x).value() == bytes);
    }
}

TEST_CASE("codecs: a value that is not finite is refused wherever it is, and named") {
  for (const codec which : all_codecs)
    for (const std::size_t n : {1, 7, 64, 4097, 65536})
      for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity()})
        for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
          std::vector<float> x(n, 1);
          x[at] = bad;
          const auto refused = encode(which, x);
          REQUIRE(!refused);
          REQUIRE(refused.error() == "element " + std::to_string(at) + " of " + std::to_string(n) +
                                         " to compress is not finite");
        }
}

TEST_CASE("codecs: truncated and lengthened bytes are refused") {
  for (const codec which : all_codecs)
    for (const std::size_t n : {0, 1, 7, 64, 4096, 4097}) {
      CAPTURE(to_string(which));
      const std::vector<float> x(n, 1.5F);
      std::vector<float> y(n);
      auto bytes = encode(which, x).value();
      bytes.push_back(std::byte{0});
      REQUIRE(!decode(which, bytes, y));
      bytes.pop_back();
      for (const std::size_t length : {std::size_t{0}, bytes.size() / 2,
                                       bytes.size() - std::min<std::size_t>(1, bytes.size())})
        if (length < bytes.size()) REQUIRE(!decode(which, std::span(bytes).first(length), y));
      std::vector<float> more(n + 1);
      REQUIRE(!decode(which, bytes, more));
    }
  std::vector<float> y(10);
  CHECK(decode(codec::float16, std::vector<std::byte>(19), y).error() ==
        "10 compressed values need 20 bytes, and 19 came");
}

TEST_CASE("codecs: random bytes are finite values or an error") {
  rng random = stream(9, "noise");
  for (const codec which : all_codecs)
    for (int round = 0; round < 300; ++round) {
      const std::size_t n = random.below(300);
      std::vector<float> x(n, 1), y(n);
      auto bytes = encode(which, x).value();
      // Half of the rounds flip a few bytes, so that not all of them fail.
      const std::size_t flips = round % 2 == 0 ? 4 : bytes.size();
      for (std::size_t k = 0; k < flips && !bytes.empty(); ++k)
        bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
      if (decode(which, bytes, y))
        for (const float value : y) REQUIRE(std::isfinite(value));
    }
}
