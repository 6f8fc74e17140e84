// Every codec's decoder over any bytes: values that are finite, or an error; and what was decoded
// can be encoded.
#include "kernels/compress/blockwise8.hpp"
#include "kernels/compress/codec.hpp"
#include "kernels/compress/top_k.hpp"
#include "kernels/compress/vector_codec.hpp"
#include "tests/fuzz/targets.hpp"

#include <algorithm>
#include <cmath>
#include <concepts>

namespace shoal::fuzz {

namespace {

using namespace kernels;

/// The largest count up to `most` of which `fits` says yes; it does of all smaller ones.
std::size_t largest(std::size_t most, const std::predicate<std::size_t> auto& fits) {
  std::size_t least = 0;
  while (least < most) {
    const auto middle = most - (most - least) / 2;
    if (fits(middle))
      least = middle;
    else
      most = middle - 1;
  }
  return least;
}

void check_finite(std::span<const float> values) {
  for (const float value : values) must(std::isfinite(value), "what is decoded is finite");
}

} // namespace

void codecs(bytes input) {
  front from(input);
  const auto how = from.byte();
  std::size_t n = from.two_bytes();
  const auto begin = from.two_bytes();
  // Seldom many values for few bytes: to look at each of them is what takes the time.
  if (how < 250) n %= 1024;
  const auto rest = from.rest();
  constexpr std::size_t kinds = std::size(all_codecs);
  const std::size_t kind = how % 10;
  if (kind < kinds) {
    const auto which = all_codecs[kind];
    // Mostly a count that the bytes could be of.
    if (how < 200)
      n = largest(rest.size(),
                  [&](std::size_t count) { return encoded_bytes(which, count) <= rest.size(); });
    std::vector<float> out(n);
    const auto done = decode(which, how < 200 ? rest.first(encoded_bytes(which, n)) : rest, out);
    if (!done) return must(!done.error().empty(), "what is wrong is said");
    check_finite(out);
    const auto again = encode(which, out);
    must(again && again->size() == encoded_bytes(which, n), "what was decoded can be encoded");
    return;
  }
  if (kind == 6) {
    std::vector<float> out(n);
    if (!decode_top_k(rest, out)) return;
    check_finite(out);
    std::vector<std::byte> bytes(top_k_bytes(rest.size() / 8));
    must(encode_top_k(out, rest.size() / 8, bytes).ok(), "what was decoded can be encoded");
    return;
  }
  if (kind == 7) {
    n = largest(std::min(n, rest.size()),
                [&](std::size_t count) { return blockwise8_bytes(count) <= rest.size(); });
    std::vector<float> out(n);
    if (!decode_blockwise8_unsigned(rest.first(blockwise8_bytes(n)), out)) return;
    check_finite(out);
    for (const float value : out) must(value >= 0, "the unsigned code has no negative values");
    return;
  }
  // A piece of a vector of tensors.
  const auto which = kind == 8 ? codec::size_adaptive : codec::top_k;
  const std::uint64_t tensors[] = {begin, std::uint64_t{size_adaptive_threshold} + how, 7,
                                   std::uint64_t{n} * 3 + 1};
  const vector_codec piece(which, tensors, (how + 1) / 256.0);
  if (how < 200 && which != codec::top_k)
    n = largest(std::min(n, rest.size()),
                [&](std::size_t count) { return piece.bytes(begin, count) <= rest.size(); });
  const auto part = how < 200 && which != codec::top_k
                        ? rest.first(std::min(rest.size(), piece.bytes(begin, n)))
                        : rest;
  std::vector<float> out(n);
  const auto done = piece.decode(begin, part, out);
  if (!done) return;
  check_finite(out);
  must(piece.fits(begin, n, part.size()) || (which == codec::top_k && part.empty()),
       "what fits is what can be decoded");
  must(piece.encode(begin, out).ok(), "what was decoded can be encoded");
}

} // namespace shoal::fuzz
