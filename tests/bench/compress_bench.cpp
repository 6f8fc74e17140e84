// The codecs beside a plain loop that copies the same floats, which is the limit of the memory. The
// inputs are larger than the caches of most machines, the sides take turns on the same ones, and
// buffers are reused. Each codec is compared with its reference first. GB/s are of floats read or
// written, 4 bytes each, for any encoded size.
// Usage: compress_bench [MILLIONS_OF_FLOATS [ROUNDS]]
//   prints one line for each codec: medians of encode, decode and both, and of both over that of
//   the copy in its round
#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/compress/bfloat16.hpp"
#include "kernels/compress/blockwise8.hpp"
#include "kernels/compress/float16.hpp"
#include "kernels/compress/uniform8.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

namespace {

using encoder = result<void>(std::span<const float>, std::span<std::byte>);
using decoder = result<void>(std::span<const std::byte>, std::span<float>);

struct side {
  const char* name;
  std::size_t (*bytes)(std::size_t);
  encoder *encode, *encode_reference;
  decoder *decode, *decode_reference;
};
constexpr side sides[] = {
    {"float16", float16_bytes, encode_float16, encode_float16_reference, decode_float16,
     decode_float16_reference},
    {"bfloat16", bfloat16_bytes, encode_bfloat16, encode_bfloat16_reference, decode_bfloat16,
     decode_bfloat16_reference},
    {"uniform8", uniform8_bytes, encode_uniform8, encode_uniform8_reference, decode_uniform8,
     decode_uniform8_reference},
    {"blockwise8", blockwise8_bytes, encode_blockwise8, encode_blockwise8_reference,
     decode_blockwise8, decode_blockwise8_reference},
};

/// Not inlined, so that the compiler sees neither the size nor that the copy is not needed.
[[gnu::noinline]] void copy(const float* from, float* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
}

template <class Work>
double seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

/// On a piece of the input: the references are slow.
void verify(const side& codec, std::span<const float> x) {
  std::vector<std::byte> fast(codec.bytes(x.size())), slow(fast.size());
  std::vector<float> y(x.size()), z(x.size());
  SHOAL_CHECK(codec.encode(x, fast).ok() && codec.encode_reference(x, slow).ok(), "finite inputs");
  SHOAL_CHECK(fast == slow, "the same bytes as the reference");
  SHOAL_CHECK(codec.decode(fast, y).ok() && codec.decode_reference(fast, z).ok(), "good bytes");
  SHOAL_CHECK(std::memcmp(y.data(), z.data(), 4 * y.size()) == 0, "the same floats");
}

} // namespace

int main(int argc, char** argv) {
  const std::size_t n = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 16) * 1'000'000;
  const std::size_t rounds = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 9;
  SHOAL_CHECK(n > 0 && rounds > 0, "something to do");
  rng random = stream(1, "codecs");
  std::vector<float> x(n), y(n, 0.0F);
  for (float& value : x) value = static_cast<float>(random.normal(0, 0.02));

  for (const side& codec : sides) {
    verify(codec, std::span(x).first(std::min<std::size_t>(n, 100'000)));
    std::vector<std::byte> bytes(codec.bytes(n));
    std::vector<double> copies, encodes, decodes, boths, ratios;
    for (std::size_t round = 0; round < rounds; ++round) {
      copies.push_back(seconds([&] { copy(x.data(), y.data(), n); }));
      encodes.push_back(seconds([&] { SHOAL_CHECK(codec.encode(x, bytes).ok(), "finite"); }));
      decodes.push_back(seconds([&] { SHOAL_CHECK(codec.decode(bytes, y).ok(), "good bytes"); }));
      boths.push_back(encodes.back() + decodes.back());
      ratios.push_back(copies.back() / boths.back());
    }
    const double gigabytes = 4e-9 * static_cast<double>(n);
    std::printf(
        "codec=%s bits=%.2f encode=%.2f decode=%.2f both=%.2f copy=%.2f ratio=%.3f least=%.3f "
        "most=%.3f\n",
        codec.name, 8 * static_cast<double>(bytes.size()) / static_cast<double>(n),
        gigabytes / median(encodes), gigabytes / median(decodes), gigabytes / median(boths),
        gigabytes / median(copies), median(ratios), *std::min_element(ratios.begin(), ratios.end()),
        *std::max_element(ratios.begin(), ratios.end()));
  }
}
