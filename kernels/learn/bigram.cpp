#include "kernels/learn/bigram.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

namespace shoal::learn {

double bigram_loss(std::span<const std::span<const std::uint8_t>> train,
                   std::span<const std::span<const std::uint8_t>> held_out) {
  std::vector<std::uint64_t> pairs(256 * 256, 1), firsts(256, 256);
  for (const auto& segment : train)
    for (std::size_t i = 0; i + 1 < segment.size(); ++i) {
      ++pairs[segment[i] * std::size_t{256} + segment[i + 1]];
      ++firsts[segment[i]];
    }
  double total = 0;
  std::uint64_t count = 0;
  for (const auto& segment : held_out)
    for (std::size_t i = 0; i + 1 < segment.size(); ++i) {
      total -= std::log(static_cast<double>(pairs[segment[i] * std::size_t{256} + segment[i + 1]]) /
                        static_cast<double>(firsts[segment[i]]));
      ++count;
    }
  return count == 0 ? 0 : total / static_cast<double>(count);
}

double bigram_loss(std::span<const std::uint8_t> train, std::span<const std::uint8_t> held_out) {
  return bigram_loss(std::span(&train, 1), std::span(&held_out, 1));
}

} // namespace shoal::learn
