#include "kernels/compress/blockwise8_ranks.hpp"

#include "kernels/base/wider.hpp"
#include "kernels/compress/avx512.hpp"
#include "kernels/compress/blockwise8.hpp"

#include <algorithm>
#include <bit>

namespace shoal::kernels {

namespace {

// The rank by one look-up. A float's exponent and the first 23 - LowBits bits of its fraction name
// a cell with at most one threshold in it. An entry is (rank << LowBits) + (2^LowBits - 1 - the
// threshold's low bits). Adding the low bits of a float carries into the rank exactly if the float
// is larger than the threshold.
template <int Finer, std::uint32_t LowBits>
struct ranks {
  static constexpr auto magnitudes = blockwise8_magnitudes<Finer>();
  static constexpr std::uint32_t last = magnitudes.size() - 1;

  /// The largest float that is not above the middle between ranks r and r + 1. A float is nearer to
  /// rank r + 1 exactly if it is larger.
  static constexpr float threshold(std::size_t r) {
    const double middle = (double{magnitudes[r]} + double{magnitudes[r + 1]}) / 2;
    const float nearest = static_cast<float>(middle);
    return double{nearest} <= middle
               ? nearest
               : std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) - 1); // positive
  }

  static constexpr std::uint32_t low_mask = (1U << LowBits) - 1;
  static constexpr std::uint32_t first_cell =
      (std::bit_cast<std::uint32_t>(threshold(0)) >> LowBits) - 1;
  static constexpr std::uint32_t last_cell = std::bit_cast<std::uint32_t>(1.0F) >> LowBits;

  static constexpr auto cells = [] {
    std::array<std::uint32_t, last_cell - first_cell + 1> out{};
    std::uint32_t rank = 0;
    for (std::uint32_t cell = 0; cell < out.size(); ++cell) {
      out[cell] = rank << LowBits;
      if (rank == last) continue;
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(threshold(rank));
      if (bits >> LowBits == first_cell + cell)
        out[cell] = (rank++ << LowBits) + (low_mask - (bits & low_mask));
    }
    // A cell with two thresholds would leave ranks unused.
    return rank == last ? out : decltype(out){};
  }();
  static_assert(cells.back() == last << LowBits, "no cell holds two thresholds");

  /// The rank nearest to a float at most 1, given its bits without the sign. If two ranks are
  /// equally near, the lower one.
  [[gnu::always_inline]] static inline std::uint32_t nearest(std::uint32_t bits) {
    const std::uint32_t cell = std::max(bits >> LowBits, first_cell) - first_cell;
    return (cells[cell] + (bits & low_mask)) >> LowBits;
  }
};

template <int Finer>
SHOAL_WIDER void plain(const float* x, std::size_t n, float absmax, std::uint8_t* code) {
  using exact = ranks<Finer, 17 - Finer>;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i] / absmax);
    if constexpr (Finer == 0) {
      const std::uint32_t rank = exact::nearest(bits & 0x7fffffffU);
      const std::uint32_t negative = 0U - (bits >> 31);
      const std::uint32_t limited = std::min(rank, 128 + negative); // -1 is not among the values
      code[i] = static_cast<std::uint8_t>(blockwise8_zero + ((limited ^ negative) - negative));
    } else {
      code[i] = static_cast<std::uint8_t>(exact::nearest(bits));
    }
  }
}

#ifdef SHOAL_AVX512

// The rank without look-ups in memory, and without a division: within a decade the rank grows
// evenly. Where the quotient is so near to a threshold that rounding matters, `plain` decides. The
// first decade is rank 0 alone, the last one the rank of 1.
template <int Finer>
struct alignas(64) decades {
  using exact = ranks<Finer, 17 - Finer>;

  // Indexed by the exponent's lowest five bits: the decade in which the exponent's range begins. If
  // the decade ends within the range, the largest float of the decade.
  std::array<std::int32_t, 32> decade{};
  std::array<float, 32> end{};
  // By decade: rank = slope y + first, and at most last.
  std::array<float, 16> slope{}, first{};
  std::array<std::int32_t, 16> last{};

  constexpr decades() {
    constexpr std::size_t count = 9, pieces = std::size_t{1} << Finer;
    first[0] = 0.5F;
    double tens = 1e6;
    for (std::size_t d = 1; d <= 7; ++d, tens /= 10) {
      const std::size_t values = pieces << (d - 1), begin = values - pieces + 1;
      slope[d] = static_cast<float>(static_cast<double>(values) * tens / 0.9);
      first[d] = static_cast<float>(static_cast<double>(begin) - static_cast<double>(values) / 9);
      last[d] = static_cast<std::int32_t>(begin + values - 1);
    }
    last[8] = exact::last;
    first[8] = static_cast<float>(exact::last) + 0.5F;
    for (std::uint32_t exponent = 96; exponent < 128; ++exponent) {
      end[exponent % 32] = 2;
      for (std::size_t d = 0; d + 1 < count; ++d) {
        const float ends = exact::threshold(static_cast<std::size_t>(last[d]));
        const std::uint32_t in = std::bit_cast<std::uint32_t>(ends) >> 23;
        if (in < exponent)
          decade[exponent % 32] = static_cast<std::int32_t>(d + 1);
        else if (in == exponent)
          end[exponent % 32] = ends;
      }
    }
  }
};

constexpr float least_wide = 0x1p-100F, most_wide = 0x1p100F;

/// The largest floats whose quotient by absmax, as a float, is at most `thresholds`. The products
/// of the two are at most two floats away.
SHOAL_AVX512 inline __m512 scaled(__m512 thresholds, __m512 absmax) {
  const __m512i one = _mm512_set1_epi32(1);
  __m512i out = _mm512_sub_epi32(_mm512_castps_si512(_mm512_mul_ps(thresholds, absmax)),
                                 _mm512_set1_epi32(2));
  for (int k = 0; k < 4; ++k) {
    const __m512i next = _mm512_add_epi32(out, one);
    const __m512 quotient = _mm512_div_ps(_mm512_castsi512_ps(next), absmax);
    out = _mm512_mask_mov_epi32(out, _mm512_cmp_ps_mask(quotient, thresholds, _CMP_LE_OQ), next);
  }
  return _mm512_castsi512_ps(out);
}

/// Rounds as many values as are a multiple of 16, and returns their number. Requires: absmax from
/// least_wide to most_wide, so that neither its inverse nor a threshold is subnormal.
template <int Finer>
SHOAL_AVX512 std::size_t wide(const float* x, std::size_t n, float absmax, std::uint8_t* code) {
  static constexpr decades<Finer> tables;
  const __m512 divisor = _mm512_set1_ps(absmax), inverse = _mm512_set1_ps(1 / absmax);
  const __m512i decade_low = _mm512_load_si512(tables.decade.data()),
                decade_high = _mm512_load_si512(tables.decade.data() + 16);
  const __m512 end_low = scaled(_mm512_load_ps(tables.end.data()), divisor),
               end_high = scaled(_mm512_load_ps(tables.end.data() + 16), divisor);
  const __m512 slope = _mm512_load_ps(tables.slope.data()),
               first = _mm512_load_ps(tables.first.data());
  const __m512i last = _mm512_load_si512(tables.last.data());
  const __m512 least = _mm512_set1_ps(0x1p-24F); // rank 0, and its exponent is in the tables
  // A rank takes four roundings, each of at most 2^-24 of less than 300. The thresholds are
  // rounded, too.
  const __m512 spare = _mm512_set1_ps(2e-4F), most = _mm512_set1_ps(1 - 4e-4F);
  const __m512i one = _mm512_set1_epi32(1),
                zero = _mm512_set1_epi32(static_cast<int>(blockwise8_zero));
  std::size_t at = 0;
  for (; at + 16 <= n; at += 16) {
    // The processor fetches the next block meanwhile.
    _mm_prefetch(reinterpret_cast<const char*>(x + at + blockwise8_block), _MM_HINT_T0);
    const __m512 value = _mm512_loadu_ps(x + at), magnitude = _mm512_abs_ps(value);
    const __m512 y = _mm512_max_ps(_mm512_mul_ps(magnitude, inverse), least);
    const __m512i exponent = _mm512_srli_epi32(_mm512_castps_si512(y), 23);
    const __m512i begins = _mm512_permutex2var_epi32(decade_low, exponent, decade_high);
    const __mmask16 beyond = _mm512_cmp_ps_mask(
        magnitude, _mm512_permutex2var_ps(end_low, exponent, end_high), _CMP_GT_OQ);
    const __m512i decade = _mm512_mask_add_epi32(begins, beyond, begins, one);
    const __m512 ascends = _mm512_fmadd_ps(y, _mm512_permutexvar_ps(decade, slope),
                                           _mm512_permutexvar_ps(decade, first));
    const __m512i rank = _mm512_cvttps_epi32(ascends);
    const __m512 above = _mm512_sub_ps(_mm512_sub_ps(ascends, _mm512_cvtepi32_ps(rank)), spare);
    // As integers: negative floats are above all positive ones.
    if (_mm512_cmp_epu32_mask(_mm512_castps_si512(above), _mm512_castps_si512(most),
                              _MM_CMPINT_NLT) != 0) [[unlikely]] {
      plain<Finer>(x + at, 16, absmax, code + at);
      continue;
    }
    __m512i out = _mm512_min_epi32(rank, _mm512_permutexvar_epi32(decade, last));
    if constexpr (Finer == 0) {
      const __mmask16 negative = _mm512_movepi32_mask(_mm512_castps_si512(value));
      out = _mm512_mask_min_epi32(out, negative, out, zero); // -1 is not among the values
      out = _mm512_mask_sub_epi32(_mm512_add_epi32(zero, out), negative, zero, out);
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(code + at), _mm512_cvtepi32_epi8(out));
  }
  return at;
}

#endif

template <int Finer>
void quantize(const float* x, std::size_t n, float absmax, std::uint8_t* code) {
  std::size_t done = 0;
#ifdef SHOAL_AVX512
  if (has_avx512() && absmax >= least_wide && absmax <= most_wide)
    done = wide<Finer>(x, n, absmax, code);
#endif
  plain<Finer>(x + done, n - done, absmax, code + done);
}

} // namespace

void blockwise8_quantize(const float* x, std::size_t n, float absmax, std::uint8_t* code) {
  quantize<0>(x, n, absmax, code);
}

void blockwise8_quantize_unsigned(const float* x, std::size_t n, float absmax, std::uint8_t* code) {
  quantize<1>(x, n, absmax, code);
}

} // namespace shoal::kernels
