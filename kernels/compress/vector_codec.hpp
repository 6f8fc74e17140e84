// How a piece of the vector that a group averages is written: by one codec, or, with size_adaptive,
// by the one that suits the tensor that each value is of. A vector is one long row of tensors, and
// a piece may begin and end anywhere.
//   Runs: neighbouring tensors that size_adaptive writes alike are one run (a tensor's whole size
//   decides, wherever it is cut); any other codec has one run. A piece is the codec's bytes of each
//   run that it touches, one after the other.
// Bytes: sum over those runs of encoded_bytes(codec, values of it in the piece).
//   top_k keeps of each piece of n values the max(1, ceil(fraction n)) largest, in 8 bytes each. A
//   piece says itself how many it holds, so that who reads it need not know the fraction.
// Thread safety: immutable.
#pragma once

#include "kernels/compress/codec.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::kernels {

class vector_codec {
public:
  /// `tensors`: sizes in values, in their order; size_adaptive alone looks at them. What is behind
  /// them (or everything, if there are none) is one more tensor. Requires: their sum fits 64 bits.
  /// `fraction`: of the values that top_k keeps, in (0, 1].
  explicit vector_codec(codec which, std::span<const std::uint64_t> tensors = {},
                        double fraction = 0.01);

  codec which() const noexcept { return which_; }
  /// Exactly what encode gives for the values [begin, begin + n).
  std::size_t bytes(std::uint64_t begin, std::size_t n) const;
  /// Whether encode can give so many bytes for these values, with whatever fraction.
  bool fits(std::uint64_t begin, std::size_t n, std::size_t bytes) const;
  /// Some values are not written at all: what is left of them is worth keeping for the next vector.
  bool drops_values() const noexcept { return which_ == codec::top_k; }
  /// `x`: the values [begin, begin + x.size()). Errors: a value that is not finite.
  result<std::vector<std::byte>> encode(std::uint64_t begin, std::span<const float> x) const;
  /// Requires: no aliasing. Errors: another length, or as codec.hpp says; then `out` is of no use.
  result<void> decode(std::uint64_t begin, std::span<const std::byte> bytes,
                      std::span<float> out) const;

private:
  struct run {
    std::uint64_t end; // of the vector
    codec how;
  };
  /// Calls what(codec, first of the piece, count) for each run of the piece until it returns false.
  template <class F>
  void for_runs(std::uint64_t begin, std::size_t n, F what) const;

  /// Of n values, by top_k.
  std::size_t kept(std::size_t n) const;

  codec which_;
  double fraction_;
  std::vector<run> runs_; // ascending; the last one has no end
};

} // namespace shoal::kernels
