#include "kernels/base/tree_digest.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace shoal {

namespace {

constexpr std::size_t block_bytes = 64, chunk_bytes = 1024, value_bytes = 32;
constexpr std::uint32_t chunk_start = 1, chunk_end = 2, parent = 4, root = 8;
constexpr std::uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/// For each of seven rounds, the order of the block's sixteen words.
constexpr auto schedule = [] {
  constexpr std::size_t next[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
  std::array<std::array<std::size_t, 16>, 7> out{};
  for (std::size_t i = 0; i < 16; ++i) out[0][i] = i;
  for (std::size_t r = 1; r < 7; ++r)
    for (std::size_t i = 0; i < 16; ++i) out[r][i] = out[r - 1][next[i]];
  return out;
}();

/// N inputs side by side: word w of all of them is one vector.
template <std::size_t N>
using lanes [[gnu::vector_size(4 * N)]] = std::uint32_t;

#define SHOAL_INLINE [[gnu::always_inline]] inline

template <class V>
SHOAL_INLINE void turn(V& x, int bits) {
  x = (x >> bits) | (x << (32 - bits));
}

template <class V>
SHOAL_INLINE void mix(V& a, V& b, V& c, V& d, const V& x, const V& y) {
  a += b + x;
  d ^= a;
  turn(d, 16);
  c += d;
  b ^= c;
  turn(b, 12);
  a += b + y;
  d ^= a;
  turn(d, 8);
  c += d;
  b ^= c;
  turn(b, 7);
}

template <std::size_t R, class V>
SHOAL_INLINE void round(V (&v)[16], const V (&m)[16]) {
  constexpr auto at = schedule[R];
  mix(v[0], v[4], v[8], v[12], m[at[0]], m[at[1]]);
  mix(v[1], v[5], v[9], v[13], m[at[2]], m[at[3]]);
  mix(v[2], v[6], v[10], v[14], m[at[4]], m[at[5]]);
  mix(v[3], v[7], v[11], v[15], m[at[6]], m[at[7]]);
  mix(v[0], v[5], v[10], v[15], m[at[8]], m[at[9]]);
  mix(v[1], v[6], v[11], v[12], m[at[10]], m[at[11]]);
  mix(v[2], v[7], v[8], v[13], m[at[12]], m[at[13]]);
  mix(v[3], v[4], v[9], v[14], m[at[14]], m[at[15]]);
}

/// One block of each input. `h` holds the chaining values.
template <class V>
SHOAL_INLINE void compress(V (&h)[8], const V (&m)[16], const V& counter_low, const V& counter_high,
                           std::uint32_t length, std::uint32_t flags) {
  const V zero{};
  V v[16] = {h[0],
             h[1],
             h[2],
             h[3],
             h[4],
             h[5],
             h[6],
             h[7],
             zero + start[0],
             zero + start[1],
             zero + start[2],
             zero + start[3],
             counter_low,
             counter_high,
             zero + length,
             zero + flags};
  round<0>(v, m);
  round<1>(v, m);
  round<2>(v, m);
  round<3>(v, m);
  round<4>(v, m);
  round<5>(v, m);
  round<6>(v, m);
  for (std::size_t i = 0; i < 8; ++i) h[i] = v[i] ^ v[i + 8];
}

/// Element I of `a` and `b` in turn, from their first halves or their second ones.
template <class V, std::size_t First, std::size_t... I>
SHOAL_INLINE void in_turn(const V& a, const V& b, V& out, std::index_sequence<I...>) {
  out = __builtin_shufflevector(a, b, (I % 2 * sizeof...(I) + First + I / 2)...);
}

/// Row r and column c change places. Each step halves the rows that are still apart.
template <std::size_t N>
SHOAL_INLINE void transpose(lanes<N>* rows) {
  using V = lanes<N>;
  using all = std::make_index_sequence<N>;
  for (std::size_t step = 1; step < N; step *= 2) {
    V next[N];
    for (std::size_t i = 0; i < N / 2; ++i) {
      in_turn<V, 0>(rows[i], rows[i + N / 2], next[2 * i], all{});
      in_turn<V, N / 2>(rows[i], rows[i + N / 2], next[2 * i + 1], all{});
    }
    for (std::size_t i = 0; i < N; ++i) rows[i] = next[i];
  }
}

/// Word w of a block of input n becomes lane n of m[w]. The inputs lie `stride` bytes apart.
template <std::size_t N>
SHOAL_INLINE void load(lanes<N> (&m)[16], const std::byte* from, std::size_t stride) {
  for (std::size_t w = 0; w < 16; w += N) {
    for (std::size_t n = 0; n < N; ++n)
      std::memcpy(&m[w + n], from + n * stride + 4 * w, sizeof m[0]);
    transpose<N>(m + w);
  }
}

/// Writes the chaining values of N inputs of whole blocks.
template <std::size_t N>
SHOAL_INLINE void hash_lanes(const std::byte* from, std::size_t bytes, std::uint64_t counter,
                             bool chunks, std::byte* into) {
  using V = lanes<N>;
  V h[8], low{}, high{};
  for (std::size_t i = 0; i < 8; ++i) h[i] = V{} + start[i];
  for (std::size_t n = 0; chunks && n < N; ++n) {
    low[n] = static_cast<std::uint32_t>(counter + n);
    high[n] = static_cast<std::uint32_t>((counter + n) >> 32);
  }
  for (std::size_t at = 0; at < bytes; at += block_bytes) {
    V m[16];
    load<N>(m, from + at, bytes);
    const std::uint32_t flags =
        chunks ? (at == 0 ? chunk_start : 0) | (at + block_bytes == bytes ? chunk_end : 0) : parent;
    compress(h, m, low, high, block_bytes, flags);
  }
  std::uint32_t words[8][N];
  std::memcpy(words, h, sizeof h);
  for (std::size_t n = 0; n < N; ++n)
    for (std::size_t i = 0; i < 8; ++i)
      std::memcpy(into + n * value_bytes + 4 * i, &words[i][n], 4);
}

/// Writes the chaining values of as many inputs as fill the lanes, and returns their number.
using hash_many = std::size_t (*)(const std::byte* from, std::size_t count, std::size_t bytes,
                                  std::uint64_t counter, bool chunks, std::byte* into);
template <std::size_t N>
SHOAL_INLINE std::size_t hash_in_lanes(const std::byte* from, std::size_t count, std::size_t bytes,
                                       std::uint64_t counter, bool chunks, std::byte* into) {
  std::size_t done = 0;
  for (; done + N <= count; done += N)
    hash_lanes<N>(from + done * bytes, bytes, counter + done, chunks, into + done * value_bytes);
  return done;
}

std::size_t hash_by_four(const std::byte* from, std::size_t count, std::size_t bytes,
                         std::uint64_t counter, bool chunks, std::byte* into) {
  return hash_in_lanes<4>(from, count, bytes, counter, chunks, into);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] std::size_t hash_by_eight(const std::byte* from, std::size_t count,
                                                  std::size_t bytes, std::uint64_t counter,
                                                  bool chunks, std::byte* into) {
  return hash_in_lanes<8>(from, count, bytes, counter, chunks, into);
}
[[gnu::target("avx512f,avx512vl")]] std::size_t
hash_by_sixteen(const std::byte* from, std::size_t count, std::size_t bytes, std::uint64_t counter,
                bool chunks, std::byte* into) {
  return hash_in_lanes<16>(from, count, bytes, counter, chunks, into);
}
#endif

/// The widest ones that this processor has, the widest first.
std::span<const hash_many> widths() {
  static constexpr hash_many all[] = {
#if defined(__x86_64__)
    hash_by_sixteen,
    hash_by_eight,
#endif
    hash_by_four
  };
  std::size_t first = 0;
#if defined(__x86_64__)
  static const bool sixteen =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
  static const bool eight = __builtin_cpu_supports("avx2");
  first = sixteen ? 0 : eight ? 1 : 2;
#endif
  return std::span(all).subspan(first);
}

void hash_whole(const std::byte* from, std::size_t count, std::size_t bytes, bool chunks,
                std::byte* into) {
  std::size_t done = 0;
  for (const auto hash : widths())
    done += hash(from + done * bytes, count - done, bytes, done, chunks, into + done * value_bytes);
  for (; done < count; ++done)
    hash_lanes<1>(from + done * bytes, bytes, done, chunks, into + done * value_bytes);
}

/// One input of any length up to a chunk.
void hash_one(std::span<const std::byte> bytes, std::uint64_t counter, bool chunk,
              std::uint32_t last_flags, std::byte* into) {
  using V = lanes<1>;
  V h[8];
  for (std::size_t i = 0; i < 8; ++i) h[i] = V{} + start[i];
  const V low = V{} + static_cast<std::uint32_t>(counter),
          high = V{} + static_cast<std::uint32_t>(counter >> 32);
  std::size_t at = 0;
  do {
    const auto length = std::min(block_bytes, bytes.size() - at);
    V m[16]{};
    if (length > 0) std::memcpy(m, bytes.data() + at, length);
    std::uint32_t flags = chunk ? (at == 0 ? chunk_start : 0) : parent;
    if (at + length == bytes.size()) flags |= last_flags | (chunk ? chunk_end : 0);
    compress(h, m, low, high, static_cast<std::uint32_t>(length), flags);
    at += length;
  } while (at < bytes.size());
  std::memcpy(into, h, value_bytes);
}

} // namespace

digest tree_hash_of(std::span<const std::byte> bytes) {
  digest out;
  auto* const result = reinterpret_cast<std::byte*>(out.bytes.data());
  if (bytes.size() <= chunk_bytes) {
    hash_one(bytes, 0, true, root, result);
    return out;
  }
  auto count = (bytes.size() + chunk_bytes - 1) / chunk_bytes;
  std::vector<std::byte> values(count * value_bytes), above(values.size() / 2 + value_bytes);
  hash_whole(bytes.data(), count - 1, chunk_bytes, true, values.data());
  hash_one(bytes.subspan((count - 1) * chunk_bytes), count - 1, true, 0,
           values.data() + (count - 1) * value_bytes);
  // An odd value goes up one level as it is.
  for (; count > 2; count = (count + 1) / 2) {
    hash_whole(values.data(), count / 2, block_bytes, false, above.data());
    if (count % 2 == 1)
      std::memcpy(above.data() + count / 2 * value_bytes, values.data() + (count - 1) * value_bytes,
                  value_bytes);
    values.swap(above);
  }
  hash_one(std::span(values).first(block_bytes), 0, false, root, result);
  return out;
}

} // namespace shoal
