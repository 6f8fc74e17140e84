// AVX-512 with VBMI: registers of 64 bytes and look-ups in them. Intel has them since Ice Lake, AMD
// since the fourth Zen. No other set of wide instructions is worth functions of its own. Functions
// marked SHOAL_AVX512 are called only where has_avx512(). Each has a plain version beside it, which
// gives the same bits.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" // false alarms of GCC 12 in its own header
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#define SHOAL_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))

namespace shoal::kernels {

inline bool has_avx512() {
  static const bool out = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512vbmi");
  return out;
}

} // namespace shoal::kernels
#endif
