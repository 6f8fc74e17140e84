// Gradients as matrices of low rank, averaged in two rounds, with error feedback. Each tensor of
// two or more dimensions is a matrix M of rows x columns, rows its first dimension. All members
// begin with the same Q [columns, rank].
//   M = gradient + residual
//   round 1: P = M Q, the group averages P;
//            P <- orthogonalised P (Gram-Schmidt, in order of the columns)
//   round 2: Q = M^T P, the group averages Q; the mean gradient is taken for P Q^T;
//            this Q is where the next step begins
//   residual = M - P Q'^T with the member's own Q'
// So the sent values and the residual add up to M. A matrix is compressed where that leaves at most
// (1 - least_saving) of its values. All other tensors travel uncompressed, in round 2. Averages may
// be weighted. The members of round 2 need not be those whose P was averaged. Any P that all of
// them hold will do. The mean gradient is the projection of the mean of their gradients. Members
// with different Q get nonsense, so Q belongs to the state that joiners download. Values sent: rank
// * rows for round 1; rank * columns, and the uncompressed tensors, for round 2; instead of rows *
// columns.
// Error: P Q'^T is the projection of M onto the columns of P, so |residual| <= |M|. If all members
// have the same M of rank `rank`, one step loses nothing but rounding. This holds if the first Q
// meets the rows of M, as a random Q does. Sums are in double, in a fixed order: the same bits
// everywhere.
// Source: Vogels, Karimireddy, Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for
// Distributed Optimization", arXiv:1905.13727, algorithms 1 and 2.
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
      // A share of a matrix's values, in [-1, 1). Below 0 a matrix is compressed even if that takes
      // more values.
      0.5;
  std::uint64_t seed = 0; // the seed of the first Q
};

/// A layout, cut into compressed matrices and uncompressed tensors, with the operations on vectors
/// of that layout. Thread safety: immutable.
class power_sgd {
public:
  /// `layout` tiles a vector of `size` values. Errors: rank 0, or a rank above the smaller side of
  /// every matrix (names the largest). No matrix at all, a saving out of range, or a tensor that
  /// ends beyond the vector.
  static result<power_sgd> make(std::span<const tensor_slot> layout, std::size_t size,
                                const power_sgd_options& options);

  std::size_t size() const noexcept { return size_; }
  std::size_t rank() const noexcept { return options_.rank; }
  /// The numbers of values that the group averages in round 1 and in round 2.
  std::size_t first_round() const noexcept { return first_; }
  std::size_t second_round() const noexcept { return second_; }
  /// The number of values of all matrices' Q, which are the first ones of round 2.
  std::size_t state_size() const noexcept { return kept_; }
  /// The sizes of the tensors that make up the two rounds' vectors, in their order.
  std::vector<std::uint64_t> first_tensors() const;
  std::vector<std::uint64_t> second_tensors() const;

  /// The first Q of all members [state_size()]: normal, the same for equal seeds.
  std::vector<float> first_state() const;

  // All of these require the stated sizes. Errors: a value that is not finite, or so large that a
  // sum is not finite.
  /// P of all matrices into `p` [first_round()], of M [size()] and Q.
  result<void> project(std::span<const float> m, std::span<const float> state,
                       std::span<float> p) const;
  /// Orthogonalises the mean P, onto which all members project, in place.
  result<void> orthogonalise(std::span<float> p) const;
  /// Writes Q of all matrices and then the uncompressed tensors into `q` [second_round()].
  result<void> second(std::span<const float> m, std::span<const float> p, std::span<float> q) const;
  /// Writes the mean gradient, given the mean Q, into `out` [size()].
  result<void> approximate(std::span<const float> p, std::span<const float> mean_q,
                           std::span<float> out) const;
  /// Writes the Q of the next step into `state`.
  void next_state(std::span<const float> mean_q, std::span<float> state) const;

  /// Values [begin, end) of a member's contribution to round 2 that were taken.
  struct stretch {
    std::size_t begin, end;
  };
  /// Keeps the rest of M where `q`, the member's own, was taken: residual [size()] = scale (M - P
  /// Q^T) in compressed matrices. Elsewhere the residual is unchanged. A column of M was taken if
  /// all values of its row of Q were. `taken` ascends.
  void keep(std::span<const float> m, std::span<const float> p, std::span<const float> q,
            std::span<const stretch> taken, double scale, std::span<float> residual) const;

private:
  struct matrix {
    std::size_t offset, rows, columns; // places in the vector
    std::size_t p, q;                  // offsets in the rounds' vectors
  };
  struct piece {
    std::size_t offset, size, q; // a tensor that travels uncompressed
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

/// Orthogonalises the columns of `x` [rows, columns], row-major, in place. Each column becomes
/// orthogonal to those before it and has length 1, or 0 where it depends on them.
void orthogonalise_columns(std::span<float> x, std::size_t rows, std::size_t columns);

/// out [a, c] = x [a, b] y [b, c], row-major, and out [b, c] = x^T [b, a] y [a, c]; sums in double.
/// The second of each pair specifies the first, as plain sums in the order of the terms. Both agree
/// to rounding.
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
