#include "kernels/compress/wire.hpp"

namespace shoal::kernels {

failure not_finite(std::span<const float> x) {
  std::size_t i = 0;
  while (i < x.size() && magnitude_bits(x[i]) < not_finite_from) ++i;
  return failure{"element " + std::to_string(i) + " of " + std::to_string(x.size()) +
                 " to compress is not finite"};
}

failure wrong_length(std::size_t got, std::size_t needed, std::size_t n) {
  return failure{std::to_string(n) + " compressed values need " + std::to_string(needed) +
                 " bytes, and " + std::to_string(got) + " came"};
}

} // namespace shoal::kernels
