// What a churn trace says in a few numbers: for `shoal trace info`, and to hold a run against its
// trace.
#pragma once

#include "netem/lifetime_fit.hpp"
#include "netem/trace.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace shoal::netem {

/// How many peers are there from each time on; begins at 0, and each number differs from the one
/// before.
std::vector<std::pair<duration, std::int64_t>> live_counts(const trace& what);

/// A session that has not ended when the trace does counts up to there, and has no length.
/// `endings` are those that ended, whatever ended them.
struct trace_statistics {
  std::size_t peers = 0, sessions = 0, endings = 0;
  duration span{}; ///< from 0 to the trace's end()
  double node_hours = 0;
  double availability = 0; ///< of node-time: node-hours / (peers * span)
  double endings_per_node_hour = 0;
  std::int64_t fewest = 0, most = 0; ///< at once
  double mean_live = 0;
  std::vector<double> session_lengths, gap_lengths; ///< seconds, as they come
};
trace_statistics statistics_of(const trace& what);

} // namespace shoal::netem
