#include "kernels/base/whole_number.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using nlohmann::json;

TEST_CASE("whole_number accepts what the type holds, and no rounded, cut or undefined number") {
  CHECK(whole_number<std::uint64_t>(json::parse("18446744073709551615")) == 18446744073709551615u);
  CHECK(whole_number<std::int64_t>(json::parse("-7")) == -7);
  CHECK(whole_number<std::uint8_t>(json::parse("255")) == 255);
  CHECK(whole_number<int>(nlohmann::ordered_json::parse("3")) == 3);
  for (const char* wrong : {"3e84", "1.0", "-1", "256", "\"1\"", "null", "true", "[]"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS((void)whole_number<std::uint8_t>(json::parse(wrong)), json::exception);
  }
  CHECK_THROWS_AS((void)whole_number<std::int64_t>(json::parse("9223372036854775808")),
                  json::exception);
}
