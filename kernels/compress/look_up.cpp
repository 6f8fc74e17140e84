#include "kernels/compress/look_up.hpp"

#include "kernels/compress/avx512.hpp"

#include <cstdint>

namespace shoal::kernels {

namespace {

void one_by_one(const std::array<float, 256>& table, const std::byte* codes, std::span<float> x) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = table[std::to_integer<std::size_t>(codes[i])];
}

#ifdef SHOAL_AVX512

constexpr std::size_t step = 64;

/// Output 16 k + 4 lane + j comes from place 16 lane + 4 k + j, see below.
constexpr std::array<std::uint8_t, step> places = [] {
  std::array<std::uint8_t, step> out{};
  for (std::size_t k = 0; k < 4; ++k)
    for (std::size_t lane = 0; lane < 4; ++lane)
      for (std::size_t j = 0; j < 4; ++j)
        out[16 * lane + 4 * k + j] = static_cast<std::uint8_t>(16 * k + 4 * lane + j);
  return out;
}();

// The table is 4 tables of bytes, each in 4 registers. Two instructions look up 64 bytes in 128
// each, and the code's highest bit chooses. The bytes are interleaved to floats in each lane of 128
// bits. So the codes are first permuted into the order that gives the floats their places.
SHOAL_AVX512 void by_registers(const std::array<float, 256>& table, const std::byte* codes,
                               std::span<float> x) {
  std::array<std::array<std::uint8_t, 256>, 4> bytes;
  for (std::size_t entry = 0; entry < 256; entry += 16) {
    const __m512i words = _mm512_loadu_si512(table.data() + entry);
    const auto put = [&](std::size_t which, __m128i part) {
      __builtin_memcpy(bytes[which].data() + entry, &part, sizeof part);
    };
    put(0, _mm512_cvtepi32_epi8(words));
    put(1, _mm512_cvtepi32_epi8(_mm512_srli_epi32(words, 8)));
    put(2, _mm512_cvtepi32_epi8(_mm512_srli_epi32(words, 16)));
    put(3, _mm512_cvtepi32_epi8(_mm512_srli_epi32(words, 24)));
  }
  __m512i t[4][4];
  for (std::size_t b = 0; b < 4; ++b)
    for (std::size_t k = 0; k < 4; ++k) t[b][k] = _mm512_loadu_si512(bytes[b].data() + step * k);
  const __m512i order = _mm512_loadu_si512(places.data());
  std::size_t at = 0;
  for (; at + step <= x.size(); at += step) {
    const __m512i code = _mm512_permutexvar_epi8(order, _mm512_loadu_si512(codes + at));
    const __mmask64 upper = _mm512_movepi8_mask(code);
    __m512i v[4];
    for (std::size_t b = 0; b < 4; ++b)
      v[b] = _mm512_mask_blend_epi8(upper, _mm512_permutex2var_epi8(t[b][0], code, t[b][1]),
                                    _mm512_permutex2var_epi8(t[b][2], code, t[b][3]));
    const __m512i low0 = _mm512_unpacklo_epi8(v[0], v[1]), high0 = _mm512_unpackhi_epi8(v[0], v[1]);
    const __m512i low1 = _mm512_unpacklo_epi8(v[2], v[3]), high1 = _mm512_unpackhi_epi8(v[2], v[3]);
    float* const to = x.data() + at;
    _mm512_storeu_si512(to, _mm512_unpacklo_epi16(low0, low1));
    _mm512_storeu_si512(to + 16, _mm512_unpackhi_epi16(low0, low1));
    _mm512_storeu_si512(to + 32, _mm512_unpacklo_epi16(high0, high1));
    _mm512_storeu_si512(to + 48, _mm512_unpackhi_epi16(high0, high1));
  }
  one_by_one(table, codes + at, x.subspan(at));
}

#endif

} // namespace

void look_up(const std::array<float, 256>& table, const std::byte* codes, std::span<float> x) {
#ifdef SHOAL_AVX512
  if (x.size() >= 1024 && has_avx512()) // for fewer codes the tables do not pay
    return by_registers(table, codes, x);
#endif
  one_by_one(table, codes, x);
}

} // namespace shoal::kernels
