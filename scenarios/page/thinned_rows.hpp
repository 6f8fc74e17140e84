// Rows of a CSV file, at most a few thousand whatever comes: when there are too many, neighbours
// are merged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

enum class merge_rule : std::uint8_t {
  last, ///< a counter, or a state: the later one, if it is known
  mean, ///< of those that are known, weighted by the rows that they stand for
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

  /// Lines of the file without its header; an empty field is not known (NaN).
  void add(std::string_view lines);
  /// All, in order.
  const std::vector<std::vector<double>>& rows() const noexcept { return rows_; }

private:
  static constexpr std::size_t most = 2048;
  void merge(std::vector<double>& into, double rows_into, const std::vector<double>& later,
             double rows_later) const;

  std::vector<column> columns_;
  std::vector<std::vector<double>> rows_; // each of `stride_` rows of the file, but for the last
  std::uint64_t stride_ = 1, in_last_ = 0;
};

} // namespace shoal::scenarios
