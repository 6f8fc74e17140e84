// Gradients as matrices of low rank, averaged in two rounds, with error feedback. Each tensor of two or more dimensions is a matrix M of
// rows x columns, rows its first dimension. All members begin with the same Q [columns, rank].
//   M = gradient + residual
//   round 1: P = M Q, the group averages P;  P <- orthogonalised P                             (Gram-Schmidt, in order of the columns)
//   round 2: Q = M^T P, the group averages Q;  the mean gradient is taken for P Q^T;  that Q is where the next step begins
//   residual = M - P Q'^T with the member's own Q', so that what it sent and what it keeps add up to what it was given
// A matrix is compressed where that leaves at most (1 - least_saving) of its values; all else travels as it is, in round 2.
// Averages may be weighted, with the same weights in both rounds. Members whose Q differ get nonsense: it belongs to the state that joiners
// download, or all begin anew (restart) at the same step.
// Values sent: rank * rows for round 1; rank * columns, and what is not compressed, for round 2; instead of rows * columns.
// Error: P Q'^T is the projection of M onto the columns of P: |residual| <= |M|. For equal M of rank `rank` at all members, nothing is lost
// to rounding after one step, if the first Q meets its rows, as a random one does.
// Sums are in double, in a fixed order: the same bits everywhere.
// Source: Vogels, Karimireddy, Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization",
// arXiv:1905.13727, algorithms 1 and 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"

namespace shoal::kernels {

struct power_sgd_options {
  std::size_t rank = 4;
  double least_saving = 0.5;  // of a matrix's values; in [0, 1)
  std::uint64_t seed = 0;     // of the first Q
};

/// One member's side. Usage, for each step: begin, average, middle, average, finish. A round that failed is begun anew with `begin`: only
/// finish changes residual and Q.
class power_sgd {
 public:
  /// `layout` tiles a vector of `size` values. Errors: rank 0, a rank above the smaller side of every matrix (names the largest), no matrix
  /// at all, a saving out of range, a tensor that ends beyond the vector.
  static result<power_sgd> make(std::span<const tensor_slot> layout, std::size_t size, const power_sgd_options& options);

  /// Values that the group averages in round 1 and in round 2.
  std::size_t first_round() const noexcept { return first_; }
  std::size_t second_round() const noexcept { return second_; }

  /// P of all matrices into `p` [first_round()]. Requires: sizes. Errors: a gradient that is not finite, or so large that a sum is not.
  result<void> begin(std::span<const float> gradient, std::span<float> p);
  /// With the mean P: the member's Q of all matrices and then what is not compressed, into `q` [second_round()]. Requires: begin before it,
  /// sizes. Errors: as begin.
  result<void> middle(std::span<const float> mean_p, std::span<float> q);
  /// With the mean Q: the mean gradient into `out` [size]. Requires: middle before it, sizes. Errors: a mean that is not finite; then
  /// nothing changed.
  result<void> finish(std::span<const float> mean_q, std::span<float> out);

  /// What was given and not sent yet [size]; 0 where nothing is compressed.
  std::span<const float> residual() const noexcept { return residual_; }
  /// Where the next step begins, the same at all members.
  std::span<const float> state() const noexcept { return q_; }
  /// Takes over another member's state. Requires: state().size() values. Errors: a value that is not finite.
  result<void> take_state(std::span<const float> other);
  /// As after make: the first Q, no residual.
  void restart();

 private:
  struct matrix {
    std::size_t offset, rows, columns;  // in the vector
    std::size_t p, q;                   // offsets in the rounds' vectors
  };
  struct piece {
    std::size_t offset, size, q;  // travels as it is
  };

  power_sgd() = default;
  void draw_column(std::size_t which, std::size_t column);

  power_sgd_options options_;
  std::vector<matrix> matrices_;
  std::vector<piece> pieces_;
  std::size_t first_ = 0, second_ = 0, kept_ = 0;  // kept_: the values of Q in round 2
  std::vector<float> residual_, q_;
  std::vector<float> given_, p_, own_q_;  // of the step at hand
};

/// The columns of `x` [rows, columns], row-major, in place: each of length 1 and orthogonal to those before it, or 0 where it depends
/// on them.
void orthogonalise_columns(std::span<float> x, std::size_t rows, std::size_t columns);

/// out [a, c] = x [a, b] y [b, c], row-major, and out [b, c] = x^T [b, a] y [a, c]; sums in double. The second of each specifies the first,
/// as plain sums in the order of the terms; they agree to rounding.
void multiply(std::span<const float> x, std::span<const float> y, std::span<float> out, std::size_t a, std::size_t b, std::size_t c);
void multiply_reference(std::span<const float> x, std::span<const float> y, std::span<float> out, std::size_t a, std::size_t b,
                        std::size_t c);
void multiply_transposed(std::span<const float> x, std::span<const float> y, std::span<float> out, std::size_t a, std::size_t b,
                         std::size_t c);
void multiply_transposed_reference(std::span<const float> x, std::span<const float> y, std::span<float> out, std::size_t a,
                                   std::size_t b, std::size_t c);

}  // namespace shoal::kernels
