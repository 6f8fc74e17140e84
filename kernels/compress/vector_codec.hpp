// How a piece of the vector that a group averages is written: by one codec, or, with size_adaptive, by the one that
// suits the tensor that each value is of. A vector is one long row of tensors, and a piece may begin and end anywhere.
//   Runs: neighbouring tensors that size_adaptive writes alike are one run (a tensor's whole size decides, wherever it is
//   cut); any other codec has one run. A piece is the codec's bytes of each run that it touches, one after the other.
// Bytes: sum over those runs of encoded_bytes(codec, values of it in the piece).
// Thread safety: immutable.
#pragma once

#include "kernels/compress/codec.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::kernels {

class vector_codec {
public:
  /// `tensors`: sizes in values, in their order; size_adaptive alone looks at them. What is behind them
  /// (or everything, if there are none) is one more tensor. Requires: their sum fits 64 bits.
  explicit vector_codec(codec which, std::span<const std::uint64_t> tensors = {});

  codec which() const noexcept { return which_; }
  /// Exactly what encode gives for the values [begin, begin + n).
  std::size_t bytes(std::uint64_t begin, std::size_t n) const;
  /// `x`: the values [begin, begin + x.size()). Errors: a value that is not finite.
  result<std::vector<std::byte>> encode(std::uint64_t begin, std::span<const float> x) const;
  /// Requires: no aliasing. Errors: another length, or as codec.hpp says; then `out` is of no use.
  result<void> decode(std::uint64_t begin, std::span<const std::byte> bytes, std::span<float> out) const;

private:
  struct run {
    std::uint64_t end; // of the vector
    codec how;
  };
  /// Calls what(codec, first of the piece, count) for each run of the piece until it returns false.
  template <class F>
  void for_runs(std::uint64_t begin, std::size_t n, F what) const;

  codec which_;
  std::vector<run> runs_; // ascending; the last one has no end
};

} // namespace shoal::kernels
