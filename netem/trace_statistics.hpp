// Statistics of a churn trace, for `shoal trace info`, and to compare a run with its trace.
#pragma once

#include "netem/lifetime_fit.hpp"
#include "netem/trace.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace shoal::netem {

/// The number of live peers from each time on. The list begins at time 0, and consecutive numbers
/// differ.
std::vector<std::pair<duration, std::int64_t>> live_counts(const trace& what);

/// The statistics of a trace. A session that is still open at the trace's end counts up to there
/// and has no length. `endings` counts the sessions that ended for any reason.
struct trace_statistics {
  std::size_t peers = 0, sessions = 0, endings = 0;
  duration span{}; ///< from 0 to the trace's end()
  double node_hours = 0;
  double availability = 0; ///< the share of node-time: node-hours / (peers * span)
  double endings_per_node_hour = 0;
  std::int64_t fewest = 0, most = 0; ///< at the same time
  double mean_live = 0;
  std::vector<double> session_lengths, gap_lengths; ///< seconds, in the order of the trace
};
trace_statistics statistics_of(const trace& what);

} // namespace shoal::netem
