// Time in a fixed number of bins, for runs of any length. When the run outgrows the bins, their
// width doubles and each pair of neighbours merges. Sums are integers, so that the result does not
// depend on the time of a merge.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shoal::scenarios {

class time_axis {
public:
  static constexpr std::size_t bins = 512;

  /// Makes room for the time `t` (ns). Returns the number of times that the width doubled.
  unsigned reach(std::int64_t t) {
    end_ = std::max(end_, t);
    unsigned out = 0;
    while (t >= width_ * static_cast<std::int64_t>(bins)) {
      width_ *= 2;
      ++out;
    }
    return out;
  }
  std::int64_t width() const noexcept { return width_; }
  /// Returns the latest time so far.
  std::int64_t end() const noexcept { return end_; }
  /// Returns the number of bins up to end().
  std::size_t used() const noexcept {
    return static_cast<std::size_t>(end_ / width_) + (end_ % width_ != 0 ? 1 : 0);
  }

private:
  std::int64_t width_ = 10'000'000, end_ = 0;
};

/// K sums for each bin. Allocates no memory before the first sum.
template <std::size_t K>
class time_bins {
public:
  void widen() {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::array<std::int64_t, K> row = rows_[i];
      rows_[i] = {};
      for (std::size_t k = 0; k < K; ++k) rows_[i / 2][k] += row[k];
    }
  }
  void add(const time_axis& axis, std::int64_t t, std::size_t which, std::int64_t value) {
    at(axis, t)[which] += value;
  }
  /// Spreads `value` evenly over [from, to). Requires: axis.reach(to) was called.
  void spread(const time_axis& axis, std::int64_t from, std::int64_t to, std::size_t which,
              std::int64_t value) {
    if (to <= from) return add(axis, from, which, value);
    // Take differences of cumulative sums at bin edges, so that wide bins equal sums of narrow
    // bins.
    const auto until = [&](std::int64_t t) {
      return static_cast<std::int64_t>(static_cast<__int128>(value) * (t - from) / (to - from));
    };
    for (std::int64_t t = from; t < to;) {
      const std::int64_t edge = std::min(to, (t / axis.width() + 1) * axis.width());
      add(axis, t, which, until(edge) - until(t));
      t = edge;
    }
  }
  bool empty() const noexcept { return rows_.empty(); }
  std::int64_t get(std::size_t bin, std::size_t which) const {
    return bin < rows_.size() ? rows_[bin][which] : 0;
  }

private:
  std::array<std::int64_t, K>& at(const time_axis& axis, std::int64_t t) {
    if (rows_.empty()) rows_.resize(time_axis::bins);
    return rows_[static_cast<std::size_t>(t / axis.width())];
  }
  std::vector<std::array<std::int64_t, K>> rows_;
};

} // namespace shoal::scenarios
