// The hosts and the load of each stage of a pipeline over time, and the moves of hosts. A plain
// state machine.
#pragma once

#include "scenarios/page/time_bins.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace shoal::scenarios {

class stage_columns {
public:
  static constexpr std::size_t most_stages = 256, most_moves = 200;

  struct move {
    std::int64_t time = 0;
    std::uint32_t host = 0, from = 0, to = 0;
  };
  /// One host in one stage.
  struct place {
    std::int64_t held = 0; ///< for how long so far, in ns
    bool now = false;
  };

  /// The host holds the stage from now on; empty: it leaves its stage for another one. Requires:
  /// axis.reach(time) was called. A stage above `most_stages` is ignored.
  void holds(const time_axis& axis, std::int64_t time, std::uint32_t host,
             std::optional<std::uint32_t> stage);
  /// A host of the stage computed for `computed` of the `over` (ns) until `time`.
  void worked(const time_axis& axis, std::int64_t time, std::uint32_t stage, std::int64_t over,
              std::int64_t computed);
  /// The host has ended, and with it its stage's state.
  void gone(const time_axis& axis, std::int64_t time, std::uint32_t host);
  /// Accounts for what is held now until the end of the axis.
  void settle(const time_axis& axis);
  void widen();

  /// In each bin of a stage, in ns of all its hosts. `held`: the time in which they held the stage.
  /// `known`: the part of that time whose load they told. `computed`: the part of that again in
  /// which they computed.
  enum sum : std::size_t { held, known, computed, sums };
  const std::vector<time_bins<sums>>& stages() const noexcept { return stages_; }
  /// By stage and host.
  const std::map<std::pair<std::uint32_t, std::uint32_t>, place>& places() const noexcept {
    return places_;
  }
  const std::deque<move>& moves() const noexcept { return moves_; }
  std::uint64_t all_moves() const noexcept { return all_moves_; }

private:
  struct holder {
    std::optional<std::uint32_t> stage, left; ///< `left`: on the way to another stage
    std::int64_t since = 0;
  };
  time_bins<sums>& bins_of(std::uint32_t stage);
  void close(const time_axis& axis, std::int64_t time, std::uint32_t host, holder& of);

  std::vector<time_bins<sums>> stages_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, place> places_;
  std::map<std::uint32_t, holder> holders_;
  std::deque<move> moves_; // the latest ones
  std::uint64_t all_moves_ = 0;
};

} // namespace shoal::scenarios
