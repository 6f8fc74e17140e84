#include "scenarios/observe/epoch_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shoal::scenarios {

// A swarm has members that lag, so that the last rows of several epochs stay open. A single host is
// at one epoch at a time; keeping one row open means that little is missing if the process is
// killed.
epoch_table::epoch_table(observed_view view) : kept_(view == observed_view::whole ? 8 : 1) {}

void epoch_table::trained(std::uint64_t epoch, std::uint64_t samples, double loss_sum) {
  if (!is_open(epoch)) return;
  row& of = rows_[epoch];
  of.samples += samples;
  of.loss_sum += loss_sum;
}

void epoch_table::reached(duration time, std::uint64_t highest) {
  if (highest_ && *highest_ >= highest) return;
  highest_ = highest;
  rows_[highest].reached = time;
}

void epoch_table::held_out(std::uint64_t epoch, double loss) {
  if (is_open(epoch) && std::isfinite(loss)) rows_[epoch].held_out = loss;
}

std::string epoch_table::rows_that_are_over() {
  if (!highest_ || *highest_ < first_open_ + kept_) return {};
  return rows_below(*highest_ - kept_);
}

std::string epoch_table::last_rows() {
  return rows_below(rows_.empty() ? 0 : rows_.rbegin()->first + 1);
}

std::string epoch_table::rows_below(std::uint64_t epoch) {
  std::string out;
  while (!rows_.empty() && rows_.begin()->first < epoch) {
    const auto& [number, of] = *rows_.begin();
    const double loss =
        of.samples > 0 ? of.loss_sum / static_cast<double>(of.samples) : std::nan("");
    out += fmt::format("{},{},{},{},{}\n", number,
                       of.reached ? fmt::format("{:.9f}", to_seconds(*of.reached)) : "", of.samples,
                       std::isfinite(loss) ? fmt::format("{}", loss) : "",
                       of.held_out ? fmt::format("{}", *of.held_out) : "");
    rows_.erase(rows_.begin());
  }
  first_open_ = std::max(first_open_, epoch);
  return out;
}

} // namespace shoal::scenarios
