#include "scenarios/page/thinned_rows.hpp"

#include "kernels/base/text_fields.hpp"

#include <cmath>
#include <limits>

namespace shoal::scenarios {

namespace {

double number_or_nan(std::string_view text) {
  return number_of<double>(text).value_or(std::numeric_limits<double>::quiet_NaN());
}

} // namespace

void thinned_rows::merge(std::vector<double>& into, double rows_into,
                         const std::vector<double>& later, double rows_later) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const double a = into[i], b = later[i];
    if (std::isnan(b)) continue;
    if (std::isnan(a) || columns_[i].rule == merge_rule::last)
      into[i] = b;
    else if (columns_[i].rule == merge_rule::sum)
      into[i] = a + b;
    else
      into[i] = (a * rows_into + b * rows_later) / (rows_into + rows_later);
  }
}

void thinned_rows::add(std::string_view lines) {
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    std::string_view line = lines.substr(0, end);
    lines = end == std::string_view::npos ? std::string_view{} : lines.substr(end + 1);
    std::vector<double> row;
    row.reserve(columns_.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::size_t comma = line.find(',');
      row.push_back(number_or_nan(line.substr(0, comma)));
      line = comma == std::string_view::npos ? std::string_view{} : line.substr(comma + 1);
    }
    if (!rows_.empty() && in_last_ < stride_) {
      merge(rows_.back(), static_cast<double>(in_last_), row, 1);
      ++in_last_;
      continue;
    }
    if (rows_.size() == most) {
      for (std::size_t i = 0; i < most / 2; ++i) {
        std::vector<double> both = std::move(rows_[2 * i]);
        merge(both, 1, rows_[2 * i + 1], 1);
        rows_[i] = std::move(both);
      }
      rows_.resize(most / 2);
      stride_ *= 2;
    }
    rows_.push_back(std::move(row));
    in_last_ = 1;
  }
}

} // namespace shoal::scenarios
