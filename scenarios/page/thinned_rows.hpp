// Rows of a CSV file, reduced to a bounded number. When there are too many rows, neighbours merge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

enum class merge_rule : std::uint8_t {
  last, ///< for counters and states: the later known value
  mean, ///< mean of known values, weighted by numbers of file rows
  sum,
};

class thinned_rows {
public:
  struct column {
    std::string name;
    merge_rule rule = merge_rule::last;
  };
  void set_columns(std::vector<column> columns) { columns_ = std::move(columns); }
  const std::vector<column>& columns() const noexcept { return columns_; }

  /// Adds lines of the file, without its header. An empty field is unknown (NaN).
  void add(std::string_view lines);
  /// Returns all rows in order.
  const std::vector<std::vector<double>>& rows() const noexcept { return rows_; }

private:
  static constexpr std::size_t most = 2048;
  void merge(std::vector<double>& into, double rows_into, const std::vector<double>& later,
             double rows_later) const;

  std::vector<column> columns_;
  std::vector<std::vector<double>>
      rows_; // each merges `stride_` file rows; the last may have fewer
  std::uint64_t stride_ = 1, in_last_ = 0;
};

} // namespace shoal::scenarios
