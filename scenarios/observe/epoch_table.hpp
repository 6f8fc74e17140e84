// epochs.csv: the time at which the swarm reached each epoch, and the samples and losses of that
// epoch. A row is written once no peer is expected to compute on the epoch's state any more.
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
  /// `highest`: the highest epoch that any peer has reached.
  void reached(duration time, std::uint64_t highest);
  /// Mean loss on the held-out text at `epoch`. A later call replaces the value.
  void held_out(std::uint64_t epoch, double loss);

  static std::string csv_header() { return "epoch,reached_s,samples,loss_train,loss_held_out\n"; }
  /// The rows of finished epochs that were not returned before, ascending.
  std::string rows_that_are_over();
  /// All remaining rows.
  std::string last_rows();

private:
  struct row {
    std::optional<duration> reached{}; // empty: no peer was seen to reach the epoch
    std::uint64_t samples = 0;         // computed on the epoch's state
    double loss_sum = 0;
    std::optional<double> held_out{};
  };
  std::string rows_below(std::uint64_t epoch);
  bool is_open(std::uint64_t epoch) const { return epoch >= first_open_; }

  std::uint64_t kept_; // how many epochs behind the highest one have open rows
  std::map<std::uint64_t, row> rows_;
  std::uint64_t first_open_ = 0;
  std::optional<std::uint64_t> highest_{};
};

} // namespace shoal::scenarios
