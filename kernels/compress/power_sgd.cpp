#include "kernels/compress/power_sgd.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/compress/wire.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace shoal::kernels {

namespace {

bool finite(std::span<const float> x) {
  return std::none_of(x.begin(), x.end(),
                      [](float value) { return magnitude_bits(value) >= not_finite_from; });
}

result<void> if_finite(std::span<const float> x, const char* what) {
  if (finite(x)) return {};
  return failure{std::string(what) + " is not finite"};
}

/// Rows and columns of a tensor as a matrix. Vectors and scalars have 0 columns.
std::pair<std::size_t, std::size_t> sides_of(const tensor_slot& slot) {
  if (slot.shape.size() < 2 || slot.size() == 0) return {slot.size(), 0};
  const auto rows = static_cast<std::size_t>(slot.shape[0]);
  return {rows, slot.size() / rows};
}

} // namespace

void multiply(std::span<const float> x, std::span<const float> y, std::span<float> out,
              std::size_t a, std::size_t b, std::size_t c) {
  // y is stored by columns, so that a sum runs along memory. There are eight partial sums, because
  // a single sum waits for each addition.
  constexpr std::size_t lanes = 8;
  std::vector<float> columns(b * c);
  for (std::size_t j = 0; j < b; ++j)
    for (std::size_t k = 0; k < c; ++k) columns[k * b + j] = y[j * c + k];
  for (std::size_t i = 0; i < a; ++i)
    for (std::size_t k = 0; k < c; ++k) {
      const float* row = x.data() + i * b;
      const float* column = columns.data() + k * b;
      std::array<double, lanes> sums{};
      std::size_t j = 0;
      for (; j + lanes <= b; j += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane)
          sums[lane] += double{row[j + lane]} * double{column[j + lane]};
      for (; j < b; ++j) sums[0] += double{row[j]} * double{column[j]};
      double sum = 0;
      for (const double part : sums) sum += part;
      out[i * c + k] = static_cast<float>(sum);
    }
}

void multiply_reference(std::span<const float> x, std::span<const float> y, std::span<float> out,
                        std::size_t a, std::size_t b, std::size_t c) {
  for (std::size_t i = 0; i < a; ++i)
    for (std::size_t k = 0; k < c; ++k) {
      double sum = 0;
      for (std::size_t j = 0; j < b; ++j) sum += double{x[i * b + j]} * double{y[j * c + k]};
      out[i * c + k] = static_cast<float>(sum);
    }
}

void multiply_transposed(std::span<const float> x, std::span<const float> y, std::span<float> out,
                         std::size_t a, std::size_t b, std::size_t c) {
  // Each row of x is added to all sums. So x is read once for each column of y, along memory.
  std::vector<double> sums(b);
  for (std::size_t k = 0; k < c; ++k) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t i = 0; i < a; ++i) {
      const double factor = y[i * c + k];
      const float* row = x.data() + i * b;
      for (std::size_t j = 0; j < b; ++j) sums[j] += double{row[j]} * factor;
    }
    for (std::size_t j = 0; j < b; ++j) out[j * c + k] = static_cast<float>(sums[j]);
  }
}

void multiply_transposed_reference(std::span<const float> x, std::span<const float> y,
                                   std::span<float> out, std::size_t a, std::size_t b,
                                   std::size_t c) {
  for (std::size_t j = 0; j < b; ++j)
    for (std::size_t k = 0; k < c; ++k) {
      double sum = 0;
      for (std::size_t i = 0; i < a; ++i) sum += double{x[i * b + j]} * double{y[i * c + k]};
      out[j * c + k] = static_cast<float>(sum);
    }
}

void orthogonalise_columns(std::span<float> x, std::size_t rows, std::size_t columns) {
  SHOAL_CHECK(x.size() == rows * columns, "the matrix has that shape");
  std::vector<double> done(columns * rows); // by columns
  for (std::size_t k = 0; k < columns; ++k) {
    const auto column = std::span(done).subspan(k * rows, rows);
    // The column is scaled first, so that squares neither overflow nor vanish.
    double largest = 0;
    for (std::size_t i = 0; i < rows; ++i)
      largest = std::max(largest, std::fabs(double{x[i * columns + k]}));
    if (largest == 0) continue;
    double before = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      column[i] = x[i * columns + k] / largest;
      before += column[i] * column[i];
    }
    // Two passes: the second one removes what rounding left of the earlier columns.
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t earlier = 0; earlier < k; ++earlier) {
        const auto other = std::span<const double>(done).subspan(earlier * rows, rows);
        double along = 0;
        for (std::size_t i = 0; i < rows; ++i) along += column[i] * other[i];
        for (std::size_t i = 0; i < rows; ++i) column[i] -= along * other[i];
      }
    double squares = 0;
    for (const double value : column) squares += value * value;
    // The columns came as floats, so a remainder below their precision is noise.
    const double length = std::sqrt(squares);
    const bool depends = length <= 1e-6 * std::sqrt(before);
    for (double& value : column) value = depends ? 0 : value / length;
  }
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < columns; ++k)
      x[i * columns + k] = static_cast<float>(done[k * rows + i]);
}

result<power_sgd> power_sgd::make(std::span<const tensor_slot> layout, std::size_t size,
                                  const power_sgd_options& options) {
  if (options.rank == 0) return failure{"PowerSGD: the rank has to be at least 1"};
  if (!(options.least_saving >= -1 && options.least_saving < 1))
    return failure{"PowerSGD: the saving has to be at least -1 and below 1"};
  power_sgd out;
  out.options_ = options;
  out.size_ = size;
  std::size_t covered = 0;
  const tensor_slot* largest = nullptr;
  std::size_t best = 0;
  std::vector<const tensor_slot*> plain;
  for (const auto& slot : layout) {
    if (slot.offset != covered || slot.size() > size - covered)
      return failure{"PowerSGD: the tensor " + slot.name +
                     " does not lie where the one before it ends, or ends beyond the vector"};
    covered += slot.size();
    const auto [rows, columns] = sides_of(slot);
    if (columns > 0 && std::min(rows, columns) >= std::max<std::size_t>(best, 1))
      largest = &slot, best = std::min(rows, columns);
    const auto sent = static_cast<double>(options.rank) *
                      (static_cast<double>(rows) + static_cast<double>(columns));
    if (options.rank <= std::min(rows, columns) &&
        sent <= (1 - options.least_saving) * static_cast<double>(slot.size())) {
      out.matrices_.push_back({slot.offset, rows, columns, out.first_, out.second_});
      out.first_ += rows * options.rank;
      out.second_ += columns * options.rank;
    } else {
      plain.push_back(&slot);
    }
  }
  if (covered != size)
    return failure{"PowerSGD: the layout covers " + std::to_string(covered) + " of " +
                   std::to_string(size) + " values"};
  if (largest == nullptr) return failure{"PowerSGD: there is no matrix to compress"};
  if (options.rank > best)
    return failure{"PowerSGD: rank " + std::to_string(options.rank) + " is above the " +
                   std::to_string(best) + " rows or columns of " + largest->name +
                   ", the largest matrix"};
  out.kept_ = out.second_;
  for (const auto* slot : plain) {
    out.pieces_.push_back({slot->offset, slot->size(), out.second_});
    out.second_ += slot->size();
  }
  return out;
}

std::vector<std::uint64_t> power_sgd::first_tensors() const {
  std::vector<std::uint64_t> out;
  for (const auto& at : matrices_) out.push_back(at.rows * options_.rank);
  return out;
}

std::vector<std::uint64_t> power_sgd::second_tensors() const {
  std::vector<std::uint64_t> out;
  for (const auto& at : matrices_) out.push_back(at.columns * options_.rank);
  for (const auto& at : pieces_) out.push_back(at.size);
  return out;
}

void power_sgd::draw_column(std::size_t which, std::size_t column, std::span<float> state) const {
  const auto& at = matrices_[which];
  auto random = stream(options_.seed, "power_sgd", which, column);
  random.for_each_normal(at.columns, [&](std::size_t j, double z) {
    state[at.q + j * options_.rank + column] = static_cast<float>(z);
  });
}

std::vector<float> power_sgd::first_state() const {
  std::vector<float> out(kept_);
  for (std::size_t which = 0; which < matrices_.size(); ++which)
    for (std::size_t column = 0; column < options_.rank; ++column) draw_column(which, column, out);
  return out;
}

result<void> power_sgd::project(std::span<const float> m, std::span<const float> state,
                                std::span<float> p) const {
  SHOAL_CHECK(m.size() == size_ && state.size() == kept_ && p.size() == first_,
              "a vector of the layout, its Q, and room for P");
  if (auto fine = if_finite(m, "PowerSGD: a value of the gradient"); !fine) return fine;
  for (const auto& [offset, rows, columns, to, from] : matrices_)
    multiply(m.subspan(offset, rows * columns), state.subspan(from, columns * options_.rank),
             p.subspan(to, rows * options_.rank), rows, columns, options_.rank);
  return if_finite(p, "PowerSGD: a sum over a row of the gradient");
}

result<void> power_sgd::orthogonalise(std::span<float> p) const {
  SHOAL_CHECK(p.size() == first_, "P of the layout");
  if (auto fine = if_finite(p, "PowerSGD: a value of the mean P"); !fine) return fine;
  for (const auto& at : matrices_)
    orthogonalise_columns(p.subspan(at.p, at.rows * options_.rank), at.rows, options_.rank);
  return {};
}

result<void> power_sgd::second(std::span<const float> m, std::span<const float> p,
                               std::span<float> q) const {
  SHOAL_CHECK(m.size() == size_ && p.size() == first_ && q.size() == second_,
              "a vector of the layout, its P, and room for Q");
  for (const auto& [offset, rows, columns, from, to] : matrices_)
    multiply_transposed(m.subspan(offset, rows * columns), p.subspan(from, rows * options_.rank),
                        q.subspan(to, columns * options_.rank), rows, columns, options_.rank);
  for (const auto& [offset, size, to] : pieces_)
    std::copy_n(m.begin() + static_cast<std::ptrdiff_t>(offset), size,
                q.begin() + static_cast<std::ptrdiff_t>(to));
  return if_finite(q, "PowerSGD: a sum over a column of the gradient");
}

double power_sgd::product(const matrix& at, std::span<const float> p, std::span<const float> q,
                          std::size_t i, std::size_t j) const {
  double sum = 0;
  for (std::size_t k = 0; k < options_.rank; ++k)
    sum += double{p[at.p + i * options_.rank + k]} * double{q[at.q + j * options_.rank + k]};
  return sum;
}

result<void> power_sgd::approximate(std::span<const float> p, std::span<const float> mean_q,
                                    std::span<float> out) const {
  SHOAL_CHECK(p.size() == first_ && mean_q.size() == second_ && out.size() == size_,
              "P and Q of the layout, and room for the gradient");
  if (auto fine = if_finite(mean_q, "PowerSGD: a value of the mean Q"); !fine) return fine;
  for (const auto& at : matrices_)
    for (std::size_t i = 0; i < at.rows; ++i)
      for (std::size_t j = 0; j < at.columns; ++j)
        out[at.offset + i * at.columns + j] = static_cast<float>(product(at, p, mean_q, i, j));
  for (const auto& [offset, size, from] : pieces_)
    std::copy_n(mean_q.begin() + static_cast<std::ptrdiff_t>(from), size,
                out.begin() + static_cast<std::ptrdiff_t>(offset));
  return if_finite(out, "PowerSGD: a value of the mean gradient");
}

void power_sgd::next_state(std::span<const float> mean_q, std::span<float> state) const {
  SHOAL_CHECK(mean_q.size() == second_ && state.size() == kept_,
              "Q of the layout, and room for the next one");
  std::copy_n(mean_q.begin(), kept_, state.begin());
  // A column of zeros would stay zero. The next step tries a new direction, the same at all
  // members.
  for (std::size_t which = 0; which < matrices_.size(); ++which)
    for (std::size_t column = 0; column < options_.rank; ++column) {
      bool zero = true;
      for (std::size_t j = 0; j < matrices_[which].columns && zero; ++j)
        zero = state[matrices_[which].q + j * options_.rank + column] == 0;
      if (zero) draw_column(which, column, state);
    }
}

void power_sgd::keep(std::span<const float> m, std::span<const float> p, std::span<const float> q,
                     std::span<const stretch> taken, double scale,
                     std::span<float> residual) const {
  SHOAL_CHECK(m.size() == size_ && p.size() == first_ && q.size() == second_ &&
                  residual.size() == size_,
              "vectors of the layout");
  std::vector<bool> whole;
  auto from = taken.begin();
  for (const auto& at : matrices_) {
    whole.assign(at.columns, false);
    for (std::size_t j = 0; j < at.columns; ++j) {
      const auto begin = at.q + j * options_.rank, end = begin + options_.rank;
      while (from != taken.end() && from->end <= begin) ++from;
      whole[j] = from != taken.end() && from->begin <= begin && end <= from->end;
    }
    for (std::size_t i = 0; i < at.rows; ++i)
      for (std::size_t j = 0; j < at.columns; ++j) {
        const auto where = at.offset + i * at.columns + j;
        if (whole[j])
          residual[where] = static_cast<float>(scale * (m[where] - product(at, p, q, i, j)));
      }
  }
}

} // namespace shoal::kernels
