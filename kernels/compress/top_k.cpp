#include "kernels/compress/top_k.hpp"

#include "kernels/base/check.hpp"
#include "kernels/compress/wire.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace shoal::kernels {

namespace {

result<void> check(std::span<const float> x, std::size_t k, std::span<std::byte> bytes) {
  SHOAL_CHECK(bytes.size() == top_k_bytes(k), "the buffer has room for the code");
  SHOAL_CHECK(x.size() <= std::size_t{1} << 32, "indices have 32 bits");
  if (k > x.size())
    return failure{"the " + std::to_string(k) + " largest of " + std::to_string(x.size()) +
                   " values do not exist"};
  if (std::any_of(x.begin(), x.end(),
                  [](float value) { return magnitude_bits(value) >= not_finite_from; }))
    return not_finite(x);
  return {};
}

/// Writes the pairs (index, value) in ascending order of the indices.
class writer {
public:
  writer(std::span<std::byte> bytes, std::size_t k)
      : bytes_(bytes.data()), values_(bytes.data() + 4 * k) {}
  void add(std::size_t index, float value) {
    store(bytes_, done_, static_cast<std::uint32_t>(index));
    store(values_, done_++, value);
  }

private:
  std::byte* bytes_;
  std::byte* values_;
  std::size_t done_ = 0;
};

} // namespace

result<void> encode_top_k(std::span<const float> x, std::size_t k, std::span<std::byte> bytes) {
  if (auto fine = check(x, k, bytes); !fine) return fine;
  if (k == 0) return {};
  std::vector<std::uint32_t> magnitudes(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    magnitudes[i] = magnitude_bits(x[i]); // bits of magnitudes have the order of the magnitudes
  const auto kth = magnitudes.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(magnitudes.begin(), kth, magnitudes.end(), std::greater<>());
  const auto least = *kth;
  auto equal =
      static_cast<std::size_t>(k) -
      static_cast<std::size_t>(std::count_if(
          magnitudes.begin(), kth, [least](std::uint32_t magnitude) { return magnitude > least; }));
  writer out(bytes, k);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto magnitude = magnitude_bits(x[i]);
    if (magnitude < least || (magnitude == least && equal == 0)) continue;
    equal -= magnitude == least;
    out.add(i, x[i]);
  }
  return {};
}

result<void> decode_top_k(std::span<const std::byte> bytes, std::span<float> x) {
  if (bytes.size() % 8 != 0)
    return failure{std::to_string(bytes.size()) +
                   " bytes are not a multiple of 8, the size of an index and its value"};
  const auto k = bytes.size() / 8;
  if (k > x.size())
    return failure{std::to_string(k) + " of " + std::to_string(x.size()) + " values came"};
  std::fill(x.begin(), x.end(), 0.0F);
  std::size_t next = 0;
  for (std::size_t j = 0; j < k; ++j) {
    const auto index = load<std::uint32_t>(bytes.data(), j);
    const auto value = load<float>(bytes.data() + 4 * k, j);
    if (index < next || index >= x.size())
      return failure{"the indices of the received values are not ascending, or beyond the vector"};
    if (magnitude_bits(value) >= not_finite_from) return failure{"a received value is not finite"};
    x[index] = value;
    next = std::size_t{index} + 1;
  }
  return {};
}

result<void> encode_top_k_with_feedback(std::span<const float> x, std::size_t k,
                                        std::span<float> residual, std::span<std::byte> bytes) {
  SHOAL_CHECK(residual.size() == x.size(), "each value has a residual");
  std::vector<float> all(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) all[i] = x[i] + residual[i];
  if (auto done = encode_top_k(all, k, bytes); !done) return done;
  std::copy(all.begin(), all.end(), residual.begin());
  for (std::size_t j = 0; j < k; ++j) residual[load<std::uint32_t>(bytes.data(), j)] = 0;
  return {};
}

result<void> encode_top_k_reference(std::span<const float> x, std::size_t k,
                                    std::span<std::byte> bytes) {
  if (auto fine = check(x, k, bytes); !fine) return fine;
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [x](std::size_t a, std::size_t b) {
    return magnitude_bits(x[a]) > magnitude_bits(x[b]);
  });
  order.resize(k);
  std::sort(order.begin(), order.end());
  writer out(bytes, k);
  for (const auto i : order) out.add(i, x[i]);
  return {};
}

} // namespace shoal::kernels
