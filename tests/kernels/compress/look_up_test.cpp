// kernels/compress/look_up: the same bits as one look-up after the other, for every length and
// alignment.
#include "kernels/base/rng.hpp"
#include "kernels/compress/look_up.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

TEST_CASE("floats are looked up with all their bits, at any length and from anywhere") {
  auto draws = stream(1, "look_up_test");
  std::array<float, 256> table;
  for (auto& entry : table)
    entry = std::bit_cast<float>(
        static_cast<std::uint32_t>(draws.below(std::uint64_t{1} << 32))); // NaN, too
  table[0] = -0.0F;
  table[127] = std::numeric_limits<float>::infinity();
  table[128] = std::numeric_limits<float>::denorm_min();
  std::vector<std::byte> codes(9000);
  for (std::size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<std::byte>(i < 256 ? i : draws.below(256));
  constexpr float untouched = 17;
  for (const std::size_t n : {0, 1, 7, 63, 64, 65, 1000, 1023, 1024, 1025, 1087, 1088, 4096, 8191})
    for (const std::size_t from : {0, 1, 13}) {
      std::vector<float> x(n + from + 1, untouched);
      look_up(table, codes.data() + from, std::span(x).subspan(from, n));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < n; ++i)
        wrong += std::memcmp(&x[from + i], &table[std::to_integer<std::size_t>(codes[from + i])],
                             sizeof(float)) == 0
                     ? 0
                     : 1;
      INFO(n << " from " << from);
      CHECK(wrong == 0);
      CHECK(x[from + n] == untouched);
      CHECK((from == 0 || x[from - 1] == untouched));
    }
}
