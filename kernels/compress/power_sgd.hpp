// Gradients as matrices of low rank, averaged in two rounds, with error feedback. Each tensor of
// two or more dimensions is a matrix M of rows x columns, rows its first dimension. All members
// begin with the same Q [columns, rank].
//   M = gradient + residual
//   round 1: P = M Q, the group averages P;  P <- orthogonalised P (Gram-Schmidt, in order of the
//   columns) round 2: Q = M^T P, the group averages Q;  the mean gradient is taken for P Q^T;  that
//   Q is where the next step begins residual = M - P Q'^T with the member's own Q', so that what it
//   sent and what it keeps add up to what it was given
// A matrix is compressed where that leaves at most (1 - least_saving) of its values; all else
// travels as it is, in round 2. Averages may be weighted. Those who are in round 2 need not be
// those whose P was averaged: any P that all of them hold will do, and the mean gradient is the
// projection of the mean of theirs. Members whose Q differ get nonsense: it belongs to the state
// that joiners download. Values sent: rank * rows for round 1; rank * columns, and what is not
// compressed, for round 2; instead of rows * columns. Error: P Q'^T is the projection of M onto the
// columns of P: |residual| <= |M|. For equal M of rank `rank` at all members, nothing is lost to
// rounding after one step, if the first Q meets its rows, as a random one does. Sums are in double,
// in a fixed order: the same bits everywhere. Source: Vogels, Karimireddy, Jaggi, "PowerSGD:
// Practical Low-Rank Gradient Compression for Distributed Optimization", arXiv:1905.13727,
// algorithms 1 and 2.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shoal::kernels {

struct power_sgd_options {
  std::size_t rank = 4;
  double least_saving =
      0.5; // of a matrix's values; in [-1, 1): below 0 also where it takes more of them
  std::uint64_t seed = 0; // of the first Q
};

/// A layout cut into matrices that are compressed and what is not, and what is done with vectors of
/// that layout. Thread safety: immutable.
class power_sgd {
public:
  /// `layout` tiles a vector of `size` values. Errors: rank 0, a rank above the smaller side of
  /// every matrix (names the largest), no matrix at all, a saving out of range, a tensor that ends
  /// beyond the vector.
  static result<power_sgd> make(std::span<const tensor_slot> layout, std::size_t size,
                                const power_sgd_options& options);

  std::size_t size() const noexcept { return size_; }
  std::size_t rank() const noexcept { return options_.rank; }
  /// Values that the group averages in round 1 and in round 2.
  std::size_t first_round() const noexcept { return first_; }
  std::size_t second_round() const noexcept { return second_; }
  /// Values of all matrices' Q, which are the first ones of round 2.
  std::size_t state_size() const noexcept { return kept_; }
  /// Values of the tensors that the two rounds' vectors are made of, in their order.
  std::vector<std::uint64_t> first_tensors() const;
  std::vector<std::uint64_t> second_tensors() const;

  /// The Q that all begin with [state_size()]: normal, the same for equal seeds.
  std::vector<float> first_state() const;

  // Requires of all: sizes. Errors of all: a value that is not finite, or so large that a sum is
  // not.
  /// P of all matrices into `p` [first_round()], of M [size()] and Q.
  result<void> project(std::span<const float> m, std::span<const float> state,
                       std::span<float> p) const;
  /// The mean P becomes what all project onto, in place.
  result<void> orthogonalise(std::span<float> p) const;
  /// Q of all matrices and then what is not compressed, into `q` [second_round()].
  result<void> second(std::span<const float> m, std::span<const float> p, std::span<float> q) const;
  /// With the mean Q: the mean gradient into `out` [size()].
  result<void> approximate(std::span<const float> p, std::span<const float> mean_q,
                           std::span<float> out) const;
  /// And the Q of the next step into `state`.
  void next_state(std::span<const float> mean_q, std::span<float> state) const;

  /// Where what one member gave to round 2 was taken: values [begin, end).
  struct stretch {
    std::size_t begin, end;
  };
  /// What is left of M where `q`, the member's own, was taken: residual [size()] = scale (M - P
  /// Q^T) in matrices that are compressed. Elsewhere it stays. A column of M was taken if all
  /// values of its row of Q were. `taken` ascends.
  void keep(std::span<const float> m, std::span<const float> p, std::span<const float> q,
            std::span<const stretch> taken, double scale, std::span<float> residual) const;

private:
  struct matrix {
    std::size_t offset, rows, columns; // in the vector
    std::size_t p, q;                  // offsets in the rounds' vectors
  };
  struct piece {
    std::size_t offset, size, q; // travels as it is
  };

  power_sgd() = default;
  void draw_column(std::size_t which, std::size_t column, std::span<float> state) const;
  double product(const matrix& at, std::span<const float> p, std::span<const float> q,
                 std::size_t i, std::size_t j) const;

  power_sgd_options options_;
  std::vector<matrix> matrices_;
  std::vector<piece> pieces_;
  std::size_t size_ = 0, first_ = 0, second_ = 0, kept_ = 0;
};

/// The columns of `x` [rows, columns], row-major, in place: each of length 1 and orthogonal to
/// those before it, or 0 where it depends on them.
void orthogonalise_columns(std::span<float> x, std::size_t rows, std::size_t columns);

/// out [a, c] = x [a, b] y [b, c], row-major, and out [b, c] = x^T [b, a] y [a, c]; sums in double.
/// The second of each specifies the first, as plain sums in the order of the terms; they agree to
/// rounding.
void multiply(std::span<const float> x, std::span<const float> y, std::span<float> out,
              std::size_t a, std::size_t b, std::size_t c);
void multiply_reference(std::span<const float> x, std::span<const float> y, std::span<float> out,
                        std::size_t a, std::size_t b, std::size_t c);
void multiply_transposed(std::span<const float> x, std::span<const float> y, std::span<float> out,
                         std::size_t a, std::size_t b, std::size_t c);
void multiply_transposed_reference(std::span<const float> x, std::span<const float> y,
                                   std::span<float> out, std::size_t a, std::size_t b,
                                   std::size_t c);

} // namespace shoal::kernels
