#include "kernels/base/text_fields.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

using namespace shoal;

TEST_CASE("a text has one part more than separators") {
  CHECK(split("", ',') == std::vector<std::string_view>{""});
  CHECK(split("a,,b,", ',') == std::vector<std::string_view>{"a", "", "b", ""});
}

TEST_CASE("a number is the whole of its text") {
  CHECK(number_of<std::uint64_t>("18446744073709551615") ==
        std::numeric_limits<std::uint64_t>::max());
  CHECK(number_of<std::int64_t>("-7") == -7);
  CHECK(number_of<double>("1.5e-3") == 0.0015);
  for (const auto* text : {"", " 1", "1 ", "+1", "1x", "0x1", "1.5", "-"})
    CHECK_FALSE_MESSAGE(number_of<std::uint64_t>(text), text);
}

TEST_CASE("a number that its type cannot hold is none") {
  CHECK(number_of<std::uint16_t>("65535") == 65535);
  CHECK_FALSE(number_of<std::uint16_t>("65536"));
  CHECK_FALSE(number_of<std::uint64_t>("18446744073709551616"));
  CHECK_FALSE(number_of<std::uint64_t>("-1"));
  CHECK_FALSE(number_of<double>("1e999"));
}

TEST_CASE("a text that is no number leaves the value as it was") {
  std::uint32_t value = 3;
  CHECK_FALSE(read_number("4294967296", value));
  CHECK_FALSE(read_number("12 ", value));
  CHECK(value == 3);
  CHECK(read_number("4294967295", value));
  CHECK(value == 4294967295U);
}

TEST_CASE("hexadecimal digits give back the bytes in their order") {
  const std::array<unsigned char, 3> bytes{0, 0xaf, 9};
  CHECK(hex_of(bytes) == "00af09");
  std::array<unsigned char, 3> back{};
  REQUIRE(read_hex("00af09", back));
  CHECK(back == bytes);
  for (const auto* text : {"00af0", "00af0900", "00AF09", "00ag09"})
    CHECK_FALSE_MESSAGE(read_hex(text, back), text);
}
