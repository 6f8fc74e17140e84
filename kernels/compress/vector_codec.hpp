// The encoding of a piece of the vector that a group averages. One codec encodes it, or with
// size_adaptive the codec that suits the tensor of each value. A vector is a row of tensors, and a
// piece may begin and end anywhere.
//   Runs: neighbouring tensors that size_adaptive encodes alike are one run. A tensor's whole size
//   decides, wherever the tensor is cut. Any other codec has one run. A piece is the codec's bytes
//   of each run that it touches, one after the other.
// Bytes: sum over those runs of encoded_bytes(codec, values of the run in the piece).
//   top_k keeps the max(1, ceil(fraction n)) largest of a piece of n values, in 8 bytes each. A
//   piece itself says how many values it holds, so that a reader need not know the fraction.
// Thread safety: immutable.
#pragma once

#include "kernels/compress/codec.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::kernels {

class vector_codec {
public:
  /// `tensors`: sizes in values, in their order, which only size_adaptive uses. The values behind
  /// them, or all values if there are no tensors, are one more tensor. Requires: their sum fits 64
  /// bits. `fraction`: the share of the values that top_k keeps, in (0, 1].
  explicit vector_codec(codec which, std::span<const std::uint64_t> tensors = {},
                        double fraction = 0.01);

  codec which() const noexcept { return which_; }
  /// The exact size of encode's result for the values [begin, begin + n).
  std::size_t bytes(std::uint64_t begin, std::size_t n) const;
  /// Whether encode can give this number of bytes for these values, with some fraction.
  bool fits(std::uint64_t begin, std::size_t n, std::size_t bytes) const;
  /// Whether the codec drops values. Callers keep the dropped values for the next vector.
  bool drops_values() const noexcept { return which_ == codec::top_k; }
  /// `x`: the values [begin, begin + x.size()). Errors: a value that is not finite.
  result<std::vector<std::byte>> encode(std::uint64_t begin, std::span<const float> x) const;
  /// Requires: no aliasing. Errors: another length, or as codec.hpp says; then `out` is of no use.
  result<void> decode(std::uint64_t begin, std::span<const std::byte> bytes,
                      std::span<float> out) const;

private:
  struct run {
    std::uint64_t end; // in the vector
    codec how;
  };
  /// Calls what(codec, first of the piece, count) for each run of the piece until the call returns
  /// false.
  template <class F>
  void for_runs(std::uint64_t begin, std::size_t n, F what) const;

  /// The number of values, out of n, that top_k keeps.
  std::size_t kept(std::size_t n) const;

  codec which_;
  double fraction_;
  std::vector<run> runs_; // ascending; the last one has no end
};

} // namespace shoal::kernels
