#include "kernels/robust/vector_passes.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/wider.hpp"

#include <algorithm>

namespace shoal::kernels {

namespace {

/// 2 KiB of doubles a vector. Blocks of sixteen vectors fit into the first-level cache.
constexpr std::size_t block_size = 256;
/// Partial sums of a product. A wider vector does not change which values a sum takes.
constexpr std::size_t lanes = 8;

/// Eight doubles, in one register or in several.
using group = double __attribute__((vector_size(lanes * sizeof(double))));
/// The same at any place of an array.
using group_in_array = double
    __attribute__((vector_size(lanes * sizeof(double)), aligned(alignof(double)), may_alias));

[[gnu::always_inline]] inline const group_in_array* groups(const double* from) {
  return reinterpret_cast<const group_in_array*>(from);
}
[[gnu::always_inline]] inline double total(const group& sums) {
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

SHOAL_WIDER void subtract(const float* x, const double* center, double* out, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) out[j] = static_cast<double>(x[j]) - center[j];
}
SHOAL_WIDER void widen(const float* x, double* out, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) out[j] = static_cast<double>(x[j]);
}

/// The products of `a` with four vectors at once, which reads `a` once.
/// Requires: n a multiple of `lanes`.
SHOAL_WIDER void four_products(const double* at_a, const double* at_b, const double* at_c,
                               const double* at_d, const double* at_e, std::size_t n, double* out) {
  const auto *a = groups(at_a), *b = groups(at_b), *c = groups(at_c), *d = groups(at_d),
             *e = groups(at_e);
  group p{}, q{}, r{}, s{};
  for (std::size_t j = 0; j < n / lanes; ++j) {
    const group x = a[j];
    p += x * b[j];
    q += x * c[j];
    r += x * d[j];
    s += x * e[j];
  }
  out[0] = total(p), out[1] = total(q), out[2] = total(r), out[3] = total(s);
}
SHOAL_WIDER void four_distances(const double* at_a, const double* at_b, const double* at_c,
                                const double* at_d, const double* at_e, std::size_t n,
                                double* out) {
  const auto *a = groups(at_a), *b = groups(at_b), *c = groups(at_c), *d = groups(at_d),
             *e = groups(at_e);
  group p{}, q{}, r{}, s{};
  for (std::size_t j = 0; j < n / lanes; ++j) {
    const group x = a[j];
    const group to_b = x - b[j], to_c = x - c[j];
    const group to_d = x - d[j], to_e = x - e[j];
    p += to_b * to_b;
    q += to_c * to_c;
    r += to_d * to_d;
    s += to_e * to_e;
  }
  out[0] = total(p), out[1] = total(q), out[2] = total(r), out[3] = total(s);
}

/// Calls `four` for the pairs of one block and adds the results to `into`. Rows of the block are
/// `stride` doubles apart.
template <class Four>
void add_pairs(const double* block, std::size_t stride, std::size_t n, square_matrix& into,
               Four four) {
  const auto row = [&](std::size_t i) { return block + i * stride; };
  for (std::size_t i = 0; i < into.size; ++i)
    for (std::size_t j = 0; j <= i; j += 4) {
      // Beyond the diagonal a product is computed again and dropped.
      const auto other = [&](std::size_t k) { return row(std::min(j + k, i)); };
      double out[4];
      four(row(i), other(0), other(1), other(2), other(3), n, out);
      for (std::size_t k = 0; k < 4 && j + k <= i; ++k) into.at(i, j + k) += out[k];
    }
}

void mirror(square_matrix& of) {
  for (std::size_t i = 0; i < of.size; ++i)
    for (std::size_t j = 0; j < i; ++j) of.at(j, i) = of.at(i, j);
}

/// Fills the end of a block's last row, so that each sum takes whole groups of lanes.
std::size_t padded(double* row, std::size_t n) {
  std::size_t up = n;
  while (up % lanes != 0) row[up++] = 0;
  return up;
}

SHOAL_WIDER void add_scaled(double* sums, double factor, const float* x, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) sums[j] += factor * static_cast<double>(x[j]);
}
SHOAL_WIDER void add_scaled_from(double* sums, double factor, const float* x, const double* center,
                                 std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) sums[j] += factor * (static_cast<double>(x[j]) - center[j]);
}
SHOAL_WIDER void narrow(const double* sums, float* out, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) out[j] = static_cast<float>(sums[j]);
}
void narrow(const double* sums, double* out, std::size_t n) {
  std::copy(sums, sums + n, out);
}

void check_sizes(std::span<const weighted_values> inputs, std::size_t size) {
  SHOAL_CHECK(!inputs.empty(), "a pass needs inputs");
  for (const auto& one : inputs) SHOAL_CHECK(one.values.size() == size, "inputs have one size");
}

/// Applies `four` to all pairs, block by block. `fill(x, at, row, n)` writes a row of the block
/// from coordinates [at, at + n) of an input.
template <class Fill, class Four>
square_matrix of_pairs(std::span<const weighted_values> inputs, std::size_t size, Fill fill,
                       Four four) {
  check_sizes(inputs, size);
  square_matrix out(inputs.size());
  std::vector<double> block(inputs.size() * block_size);
  for (std::size_t at = 0; at < size; at += block_size) {
    const auto n = std::min(block_size, size - at);
    std::size_t up = n;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      double* const row = block.data() + i * block_size;
      fill(inputs[i].values.data() + at, at, row, n);
      up = padded(row, n);
    }
    add_pairs(block.data(), block_size, up, out, four);
  }
  mirror(out);
  return out;
}

} // namespace

square_matrix centered_products(std::span<const weighted_values> inputs,
                                std::span<const double> center) {
  const auto from_center = [&](const float* x, std::size_t at, double* row, std::size_t n) {
    subtract(x, center.data() + at, row, n);
  };
  return of_pairs(inputs, center.size(), from_center, four_products);
}

square_matrix squared_distances(std::span<const weighted_values> inputs) {
  SHOAL_CHECK(!inputs.empty(), "a pass needs inputs");
  const auto as_doubles = [](const float* x, std::size_t, double* row, std::size_t n) {
    widen(x, row, n);
  };
  return of_pairs(inputs, inputs.front().values.size(), as_doubles, four_distances);
}

double squared_distance(std::span<const float> x, std::span<const double> center) {
  SHOAL_CHECK(x.size() == center.size(), "inputs have one size");
  double out = 0;
  alignas(64) double block[block_size];
  for (std::size_t at = 0; at < x.size(); at += block_size) {
    const auto n = std::min(block_size, x.size() - at);
    subtract(x.data() + at, center.data() + at, block, n);
    double four[4];
    four_products(block, block, block, block, block, padded(block, n), four);
    out += four[0];
  }
  return out;
}

template <class Out>
void combine_around(std::span<const double> center, std::span<const weighted_values> inputs,
                    std::span<const double> factors, std::span<Out> out) {
  check_sizes(inputs, out.size());
  SHOAL_CHECK(center.size() == out.size() && factors.size() == inputs.size(), "sizes agree");
  alignas(64) double sums[block_size];
  for (std::size_t at = 0; at < out.size(); at += block_size) {
    const auto n = std::min(block_size, out.size() - at);
    std::copy_n(center.data() + at, n, sums);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      add_scaled_from(sums, factors[i], inputs[i].values.data() + at, center.data() + at, n);
    narrow(sums, out.data() + at, n);
  }
}

template <class Out>
void combine(std::span<const weighted_values> inputs, std::span<const double> factors,
             std::span<Out> out) {
  check_sizes(inputs, out.size());
  SHOAL_CHECK(factors.size() == inputs.size(), "sizes agree");
  alignas(64) double sums[block_size];
  for (std::size_t at = 0; at < out.size(); at += block_size) {
    const auto n = std::min(block_size, out.size() - at);
    std::fill_n(sums, n, 0.0);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      add_scaled(sums, factors[i], inputs[i].values.data() + at, n);
    narrow(sums, out.data() + at, n);
  }
}

template void combine_around(std::span<const double>, std::span<const weighted_values>,
                             std::span<const double>, std::span<float>);
template void combine_around(std::span<const double>, std::span<const weighted_values>,
                             std::span<const double>, std::span<double>);
template void combine(std::span<const weighted_values>, std::span<const double>, std::span<float>);
template void combine(std::span<const weighted_values>, std::span<const double>, std::span<double>);

} // namespace shoal::kernels
