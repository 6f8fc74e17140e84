#include "kernels/compress/uniform8.hpp"

#include "kernels/base/check.hpp"
#include "kernels/compress/avx512.hpp"
#include "kernels/compress/look_up.hpp"
#include "kernels/compress/wire.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace shoal::kernels {

namespace {

constexpr std::size_t buckets = 256;
constexpr double range_in_sds = 6;
constexpr std::size_t codebook_bytes = buckets * sizeof(float);
/// The number of partial sums: enough for the widest registers and to hide the additions' latency.
constexpr std::size_t lanes = 256;
constexpr std::size_t tables = 4;
/// The number of values that are quantized before they are counted. Their floats and codes stay in
/// the first-level cache.
constexpr std::size_t block_size = 2048;

using partial_sums = std::array<double, lanes>;

double in_order(const partial_sums& sums) {
  double out = 0;
  for (const double sum : sums) out += sum;
  return out;
}

/// Whether a value is not finite.
SHOAL_WIDER bool add_all(const float* x, std::size_t n, partial_sums& sums) {
  double* const s = sums.data();
  std::uint32_t worst = 0;
  std::size_t at = 0;
  for (; at + lanes <= n; at += lanes)
    for (std::size_t j = 0; j < lanes; ++j) {
      worst = std::max(worst, magnitude_bits(x[at + j]));
      s[j] += static_cast<double>(x[at + j]);
    }
  for (std::size_t j = 0; at + j < n; ++j) {
    worst = std::max(worst, magnitude_bits(x[at + j]));
    s[j] += static_cast<double>(x[at + j]);
  }
  return worst >= not_finite_from;
}

SHOAL_WIDER void add_squares(const float* x, std::size_t n, double mu, partial_sums& sums) {
  double* const s = sums.data();
  std::size_t at = 0;
  for (; at + lanes <= n; at += lanes)
    for (std::size_t j = 0; j < lanes; ++j) {
      const double centered = static_cast<double>(x[at + j]) - mu;
      s[j] += centered * centered;
    }
  for (std::size_t j = 0; at + j < n; ++j) {
    const double centered = static_cast<double>(x[at + j]) - mu;
    s[j] += centered * centered;
  }
}

SHOAL_WIDER void plain(const float* x, std::size_t n, double mu, double inverse, std::uint8_t* q) {
  // From 2^52 on doubles are integers. So the addition rounds, and the low bits are the code.
  constexpr double to_integer = 0x1.8p52 + 128;
  for (std::size_t i = 0; i < n; ++i) {
    double t = (static_cast<double>(x[i]) - mu) * inverse;
    t = t < -128 ? -128 : t;
    t = t > 127 ? 127 : t;
    q[i] = static_cast<std::uint8_t>(std::bit_cast<std::uint64_t>(t + to_integer));
  }
}

#ifdef SHOAL_AVX512
/// Quantizes as many values as are a multiple of 16, and returns their number. No element is
/// farther from the mean than sqrt(n) standard deviations. So integers of 32 bits hold the values
/// that packing cuts to 8 bits.
SHOAL_AVX512 std::size_t wide(const float* x, std::size_t n, double mu, double inverse,
                              std::uint8_t* q) {
  const __m512d middle = _mm512_set1_pd(mu), factor = _mm512_set1_pd(inverse);
  const __m128i sign = _mm_set1_epi8(static_cast<char>(0x80));
  std::size_t at = 0;
  for (; at + 16 <= n; at += 16) {
    __m256i rounded[2];
    for (std::size_t half = 0; half < 2; ++half)
      rounded[half] = _mm512_cvtpd_epi32(_mm512_mul_pd(
          _mm512_sub_pd(_mm512_cvtps_pd(_mm256_loadu_ps(x + at + 8 * half)), middle), factor));
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(rounded[0]), rounded[1], 1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + at),
                     _mm_xor_si128(_mm512_cvtsepi32_epi8(both), sign));
  }
  return at;
}
#endif

void quantize(const float* x, std::size_t n, double mu, double inverse, std::uint8_t* q) {
  std::size_t done = 0;
#ifdef SHOAL_AVX512
  if (has_avx512()) done = wide(x, n, mu, inverse, q);
#endif
  plain(x + done, n - done, mu, inverse, q + done);
}

/// Additions to equal neighbouring buckets would wait for each other, so four tables take turns.
/// Sum and count of a bucket are neighbours, and one instruction adds to both.
struct histogram {
  struct alignas(16) entry {
    double sum = 0, count = 0;
    void add(float x) {
      sum += static_cast<double>(x);
      count += 1;
    }
  };
  std::array<std::array<entry, buckets>, tables> entries{};

  void add(const float* x, const std::uint8_t* q, std::size_t n) {
    std::size_t i = 0;
    for (; i + tables <= n; i += tables)
      for (std::size_t k = 0; k < tables; ++k) entries[k][q[i + k]].add(x[i + k]);
    for (std::size_t k = 0; i + k < n; ++k) entries[k][q[i + k]].add(x[i + k]);
  }

  float mean(std::size_t b) const {
    double sum = 0, count = 0;
    for (std::size_t k = 0; k < tables; ++k) {
      sum += entries[k][b].sum;
      count += entries[k][b].count;
    }
    if (count == 0) return 0;
    // The mean of the largest floats must not round to infinity.
    constexpr double most = std::numeric_limits<float>::max();
    return static_cast<float>(std::clamp(sum / count, -most, most));
  }
};

/// 0 if all values are equal, for which all quotients are 0.
double inverse_scale(double squares, std::size_t n) {
  const double sd = n > 1 ? std::sqrt(squares / static_cast<double>(n - 1)) : 0;
  return sd > 0 ? 1 / (range_in_sds * sd / static_cast<double>(buckets)) : 0;
}

result<void> read_codebook(std::span<const std::byte> bytes, std::span<const float> x,
                           float* codebook) {
  if (bytes.size() != uniform8_bytes(x.size()))
    return wrong_length(bytes.size(), uniform8_bytes(x.size()), x.size());
  for (std::size_t b = 0; b < buckets && !x.empty(); ++b) {
    codebook[b] = load<float>(bytes.data(), b);
    if (magnitude_bits(codebook[b]) >= not_finite_from)
      return failure{"a codebook has a value that is not finite, in bucket " + std::to_string(b)};
  }
  return {};
}

} // namespace

result<void> encode_uniform8(std::span<const float> x, std::span<std::byte> bytes) {
  SHOAL_CHECK(bytes.size() == uniform8_bytes(x.size()), "the buffer has room for the code");
  if (x.empty()) return {};
  partial_sums sums{}, squares{};
  if (add_all(x.data(), x.size(), sums)) return not_finite(x);
  const double mu = in_order(sums) / static_cast<double>(x.size());
  add_squares(x.data(), x.size(), mu, squares);
  const double inverse = inverse_scale(in_order(squares), x.size());

  histogram seen;
  std::array<std::uint8_t, block_size> q;
  for (std::size_t at = 0; at < x.size(); at += block_size) {
    const std::size_t n = std::min(block_size, x.size() - at);
    quantize(x.data() + at, n, mu, inverse, q.data());
    // The next block comes from memory meanwhile, because counting keeps the processor busy and
    // quantizing does not.
    constexpr std::size_t turn = 128, line = 64 / sizeof(float);
    for (std::size_t i = 0; i < n; i += turn) {
      for (std::size_t ahead = at + block_size + i;
           ahead < std::min(x.size(), at + block_size + i + turn); ahead += line)
        __builtin_prefetch(x.data() + ahead);
      seen.add(x.data() + at + i, q.data() + i, std::min(turn, n - i));
    }
    std::memcpy(bytes.data() + codebook_bytes + at, q.data(), n);
  }
  for (std::size_t b = 0; b < buckets; ++b) store(bytes.data(), b, seen.mean(b));
  return {};
}

result<void> decode_uniform8(std::span<const std::byte> bytes, std::span<float> x) {
  std::array<float, buckets> codebook;
  if (auto read = read_codebook(bytes, x, codebook.data()); !read) return read;
  const std::byte* const q = bytes.data() + (x.empty() ? 0 : codebook_bytes);
  look_up(codebook, q, x);
  return {};
}

result<void> encode_uniform8_reference(std::span<const float> x, std::span<std::byte> bytes) {
  SHOAL_CHECK(bytes.size() == uniform8_bytes(x.size()), "the buffer has room for the code");
  const std::size_t n = x.size();
  if (n == 0) return {};
  partial_sums sums{};
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return not_finite(x);
    sums[i % lanes] += double{x[i]};
  }
  const double mu = in_order(sums) / static_cast<double>(n);
  partial_sums squares{};
  for (std::size_t i = 0; i < n; ++i)
    squares[i % lanes] += (double{x[i]} - mu) * (double{x[i]} - mu);
  const double inverse = inverse_scale(in_order(squares), n);
  for (std::size_t i = 0; i < n; ++i) {
    const double rounded = std::nearbyint((double{x[i]} - mu) * inverse);
    store(bytes.data() + codebook_bytes, i,
          static_cast<std::uint8_t>(std::clamp(rounded + 128, 0.0, 255.0)));
  }
  for (std::size_t b = 0; b < buckets; ++b) {
    std::array<double, tables> sum{}, count{};
    for (std::size_t i = 0; i < n; ++i)
      if (load<std::uint8_t>(bytes.data() + codebook_bytes, i) == b) {
        sum[i % tables] += double{x[i]};
        count[i % tables] += 1;
      }
    const double all = count[0] + count[1] + count[2] + count[3];
    constexpr double most = std::numeric_limits<float>::max();
    const double mean = all == 0 ? 0 : (((0 + sum[0]) + sum[1]) + sum[2] + sum[3]) / all;
    store(bytes.data(), b, static_cast<float>(std::clamp(mean, -most, most)));
  }
  return {};
}

result<void> decode_uniform8_reference(std::span<const std::byte> bytes, std::span<float> x) {
  std::vector<float> codebook(buckets);
  if (auto read = read_codebook(bytes, x, codebook.data()); !read) return read;
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = codebook[load<std::uint8_t>(bytes.data() + codebook_bytes, i)];
  return {};
}

} // namespace shoal::kernels
