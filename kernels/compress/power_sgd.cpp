#include "kernels/compress/power_sgd.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/compress/wire.hpp"

namespace shoal::kernels {

namespace {

bool finite(std::span<const float> x) {
  return std::none_of(x.begin(), x.end(), [](float value) { return magnitude_bits(value) >= not_finite_from; });
}

result<void> if_finite(std::span<const float> x, const char* what) {
  if (finite(x)) return {};
  return failure{std::string(what) + " is not finite"};
}

/// Rows and columns of a tensor as a matrix; columns 0 for what is a vector or less.
std::pair<std::size_t, std::size_t> sides_of(const tensor_slot& slot) {
  if (slot.shape.size() < 2 || slot.size() == 0) return {slot.size(), 0};
  const auto rows = static_cast<std::size_t>(slot.shape[0]);
  return {rows, slot.size() / rows};
}

}  // namespace

void multiply(std::span<const float> x, std::span<const float> y, std::span<float> out, std::size_t a, std::size_t b, std::size_t c) {
  // y by columns, so that a sum runs along memory; eight partial sums, because one is as slow as its additions are one after the other.
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
        for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += double{row[j + lane]} * double{column[j + lane]};
      for (; j < b; ++j) sums[0] += double{row[j]} * double{column[j]};
      double sum = 0;
      for (const double part : sums) sum += part;
      out[i * c + k] = static_cast<float>(sum);
    }
}

void multiply_reference(std::span<const float> x, std::span<const float> y, std::span<float> out, std::size_t a, std::size_t b,
                        std::size_t c) {
  for (std::size_t i = 0; i < a; ++i)
    for (std::size_t k = 0; k < c; ++k) {
      double sum = 0;
      for (std::size_t j = 0; j < b; ++j) sum += double{x[i * b + j]} * double{y[j * c + k]};
      out[i * c + k] = static_cast<float>(sum);
    }
}

void multiply_transposed(std::span<const float> x, std::span<const float> y, std::span<float> out, std::size_t a, std::size_t b,
                         std::size_t c) {
  // Row after row of x is added to all sums, so that x is read once for each column of y, along memory.
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

void multiply_transposed_reference(std::span<const float> x, std::span<const float> y, std::span<float> out, std::size_t a,
                                   std::size_t b, std::size_t c) {
  for (std::size_t j = 0; j < b; ++j)
    for (std::size_t k = 0; k < c; ++k) {
      double sum = 0;
      for (std::size_t i = 0; i < a; ++i) sum += double{x[i * b + j]} * double{y[i * c + k]};
      out[j * c + k] = static_cast<float>(sum);
    }
}

void orthogonalise_columns(std::span<float> x, std::size_t rows, std::size_t columns) {
  SHOAL_CHECK(x.size() == rows * columns, "a matrix of that shape");
  std::vector<double> done(columns * rows);  // by columns
  for (std::size_t k = 0; k < columns; ++k) {
    const auto column = std::span(done).subspan(k * rows, rows);
    // Scaled first, so that squares neither overflow nor vanish.
    double largest = 0;
    for (std::size_t i = 0; i < rows; ++i) largest = std::max(largest, std::fabs(double{x[i * columns + k]}));
    if (largest == 0) continue;
    double before = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      column[i] = x[i * columns + k] / largest;
      before += column[i] * column[i];
    }
    // Twice: what rounding left of the earlier columns goes the second time.
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t earlier = 0; earlier < k; ++earlier) {
        const auto other = std::span<const double>(done).subspan(earlier * rows, rows);
        double along = 0;
        for (std::size_t i = 0; i < rows; ++i) along += column[i] * other[i];
        for (std::size_t i = 0; i < rows; ++i) column[i] -= along * other[i];
      }
    double squares = 0;
    for (const double value : column) squares += value * value;
    // The columns came as floats: what is left of one below their precision is noise.
    const double length = std::sqrt(squares);
    const bool depends = length <= 1e-6 * std::sqrt(before);
    for (double& value : column) value = depends ? 0 : value / length;
  }
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < columns; ++k) x[i * columns + k] = static_cast<float>(done[k * rows + i]);
}

result<power_sgd> power_sgd::make(std::span<const tensor_slot> layout, std::size_t size, const power_sgd_options& options) {
  if (options.rank == 0) return failure{"PowerSGD: the rank has to be at least 1"};
  if (!(options.least_saving >= 0 && options.least_saving < 1)) return failure{"PowerSGD: the saving has to be at least 0 and below 1"};
  power_sgd out;
  out.options_ = options;
  std::size_t covered = 0;
  const tensor_slot* largest = nullptr;
  std::size_t best = 0;
  std::vector<const tensor_slot*> plain;
  for (const auto& slot : layout) {
    if (slot.offset != covered || slot.size() > size - covered)
      return failure{"PowerSGD: the tensor " + slot.name + " does not lie where the one before it ends, or ends beyond the vector"};
    covered += slot.size();
    const auto [rows, columns] = sides_of(slot);
    if (columns > 0 && std::min(rows, columns) >= std::max<std::size_t>(best, 1)) largest = &slot, best = std::min(rows, columns);
    const auto sent = static_cast<double>(options.rank) * (static_cast<double>(rows) + static_cast<double>(columns));
    if (options.rank <= std::min(rows, columns) && sent <= (1 - options.least_saving) * static_cast<double>(slot.size())) {
      out.matrices_.push_back({slot.offset, rows, columns, out.first_, out.second_});
      out.first_ += rows * options.rank;
      out.second_ += columns * options.rank;
    } else {
      plain.push_back(&slot);
    }
  }
  if (covered != size) return failure{"PowerSGD: the layout covers " + std::to_string(covered) + " of " + std::to_string(size) + " values"};
  if (largest == nullptr) return failure{"PowerSGD: there is no matrix to compress"};
  if (options.rank > best)
    return failure{"PowerSGD: rank " + std::to_string(options.rank) + " is above the " + std::to_string(best) + " of the smaller side of " +
                   largest->name + ", the largest matrix"};
  out.kept_ = out.second_;
  for (const auto* slot : plain) {
    out.pieces_.push_back({slot->offset, slot->size(), out.second_});
    out.second_ += slot->size();
  }
  out.residual_.resize(size);
  out.q_.resize(out.kept_);
  out.restart();
  return out;
}

void power_sgd::draw_column(std::size_t which, std::size_t column) {
  const auto& at = matrices_[which];
  auto random = stream(options_.seed, "power_sgd", which, column);
  for (std::size_t j = 0; j < at.columns; ++j) q_[at.q + j * options_.rank + column] = static_cast<float>(random.normal());
}

void power_sgd::restart() {
  std::fill(residual_.begin(), residual_.end(), 0.0F);
  for (std::size_t which = 0; which < matrices_.size(); ++which)
    for (std::size_t column = 0; column < options_.rank; ++column) draw_column(which, column);
}

result<void> power_sgd::take_state(std::span<const float> other) {
  SHOAL_CHECK(other.size() == q_.size(), "a state of this layout and rank");
  if (auto fine = if_finite(other, "PowerSGD: a value of the state that came"); !fine) return fine;
  std::copy(other.begin(), other.end(), q_.begin());
  return {};
}

result<void> power_sgd::begin(std::span<const float> gradient, std::span<float> p) {
  SHOAL_CHECK(gradient.size() == residual_.size() && p.size() == first_, "a gradient of the layout, and room for P");
  given_.resize(gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) given_[i] = gradient[i] + residual_[i];
  if (auto fine = if_finite(given_, "PowerSGD: a value of the gradient"); !fine) return fine;
  for (const auto& [offset, rows, columns, to, from] : matrices_)
    multiply(std::span(given_).subspan(offset, rows * columns), std::span(q_).subspan(from, columns * options_.rank),
             p.subspan(to, rows * options_.rank), rows, columns, options_.rank);
  return if_finite(p, "PowerSGD: a sum over a row of the gradient");
}

result<void> power_sgd::middle(std::span<const float> mean_p, std::span<float> q) {
  SHOAL_CHECK(mean_p.size() == first_ && q.size() == second_ && given_.size() == residual_.size(), "P of this step, and room for Q");
  if (auto fine = if_finite(mean_p, "PowerSGD: a value of the mean P"); !fine) return fine;
  p_.assign(mean_p.begin(), mean_p.end());
  for (const auto& [offset, rows, columns, from, to] : matrices_) {
    const auto p = std::span(p_).subspan(from, rows * options_.rank);
    orthogonalise_columns(p, rows, options_.rank);
    multiply_transposed(std::span(given_).subspan(offset, rows * columns), p, q.subspan(to, columns * options_.rank), rows, columns,
                        options_.rank);
  }
  for (const auto& [offset, size, to] : pieces_)
    std::copy_n(given_.begin() + static_cast<std::ptrdiff_t>(offset), size, q.begin() + static_cast<std::ptrdiff_t>(to));
  own_q_.assign(q.begin(), q.begin() + static_cast<std::ptrdiff_t>(kept_));
  return if_finite(q, "PowerSGD: a sum over a column of the gradient");
}

result<void> power_sgd::finish(std::span<const float> mean_q, std::span<float> out) {
  SHOAL_CHECK(mean_q.size() == second_ && out.size() == residual_.size() && own_q_.size() == kept_ && p_.size() == first_,
              "Q of this step, and room for the gradient");
  if (auto fine = if_finite(mean_q, "PowerSGD: a value of the mean Q"); !fine) return fine;
  const auto rank = options_.rank;
  const auto product = [&](const matrix& at, std::span<const float> q, std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t k = 0; k < rank; ++k) sum += double{p_[at.p + i * rank + k]} * double{q[at.q + j * rank + k]};
    return sum;
  };
  for (const auto& at : matrices_)
    for (std::size_t i = 0; i < at.rows; ++i)
      for (std::size_t j = 0; j < at.columns; ++j) {
        const auto where = at.offset + i * at.columns + j;
        out[where] = static_cast<float>(product(at, mean_q, i, j));
        residual_[where] = static_cast<float>(given_[where] - product(at, own_q_, i, j));
      }
  for (const auto& [offset, size, from] : pieces_)
    std::copy_n(mean_q.begin() + static_cast<std::ptrdiff_t>(from), size, out.begin() + static_cast<std::ptrdiff_t>(offset));
  std::copy_n(mean_q.begin(), kept_, q_.begin());
  // A column of zeros would stay one for ever: the next step looks in a new direction, the same at all members.
  for (std::size_t which = 0; which < matrices_.size(); ++which)
    for (std::size_t column = 0; column < rank; ++column) {
      bool zero = true;
      for (std::size_t j = 0; j < matrices_[which].columns && zero; ++j) zero = q_[matrices_[which].q + j * rank + column] == 0;
      if (zero) draw_column(which, column);
    }
  given_.clear(), own_q_.clear();
  return {};
}

}  // namespace shoal::kernels
