// epochs.csv: when each epoch was reached, and what was learnt at it. A row is written once nobody
// is expected to compute on that epoch's state any more.
//   epoch,reached_s,samples,loss_train,loss_held_out
#pragma once

#include "kernels/base/units.hpp"
#include "scenarios/observe/rounds.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace shoal::scenarios {

class epoch_table {
public:
  explicit epoch_table(observed_view view);

  /// `samples` were computed on the state of `epoch`; `loss_sum` is the sum of their losses.
  void trained(std::uint64_t epoch, std::uint64_t samples, double loss_sum);
  /// The highest epoch so far.
  void reached(duration time, std::uint64_t highest);
  /// Mean loss on the held-out text at `epoch`; a later one replaces it.
  void held_out(std::uint64_t epoch, double loss);

  static std::string csv_header() { return "epoch,reached_s,samples,loss_train,loss_held_out\n"; }
  /// The rows that are over and were not given out before, ascending.
  std::string rows_that_are_over();
  /// All that are left.
  std::string last_rows();

private:
  struct row {
    std::optional<duration> reached{}; // nothing: it was skipped, or only heard of
    std::uint64_t samples = 0;         // computed
    double loss_sum = 0;
    std::optional<double> held_out{};
  };
  std::string rows_below(std::uint64_t epoch);
  bool is_open(std::uint64_t epoch) const { return epoch >= first_open_; }

  std::uint64_t kept_; // epochs behind the highest whose rows are open
  std::map<std::uint64_t, row> rows_;
  std::uint64_t first_open_ = 0;
  std::optional<std::uint64_t> highest_{};
};

} // namespace shoal::scenarios
