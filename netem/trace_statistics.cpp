#include "netem/trace_statistics.hpp"

#include <algorithm>
#include <map>

namespace shoal::netem {

std::vector<std::pair<duration, std::int64_t>> live_counts(const trace& what) {
  std::map<duration, std::int64_t> changes{{duration::zero(), 0}};
  for (const trace::peer& peer : what.peers())
    for (const session& s : *peer.sessions) {
      ++changes[s.start];
      if (s.end != forever) --changes[s.end];
    }
  std::vector<std::pair<duration, std::int64_t>> out;
  std::int64_t live = 0;
  for (const auto& [when, change] : changes) {
    live += change;
    if (out.empty() || change != 0) out.emplace_back(when, live);
  }
  return out;
}

trace_statistics statistics_of(const trace& what) {
  trace_statistics out;
  out.peers = what.peers().size();
  out.span = what.end();
  double seconds = 0;
  for (const trace::peer& peer : what.peers()) {
    const session* before = nullptr;
    for (const session& s : *peer.sessions) {
      ++out.sessions;
      seconds += to_seconds(std::min(s.end, std::max(what.end(), s.start)) - s.start);
      if (s.end != forever) {
        ++out.endings;
        out.session_lengths.push_back(to_seconds(s.end - s.start));
      }
      if (before != nullptr && before->end < s.start)
        out.gap_lengths.push_back(to_seconds(s.start - before->end));
      before = &s;
    }
  }
  out.node_hours = seconds / 3600;
  const double span = to_seconds(out.span);
  if (span > 0) {
    out.mean_live = seconds / span;
    if (out.peers > 0) out.availability = out.mean_live / static_cast<double>(out.peers);
  }
  if (seconds > 0) out.endings_per_node_hour = static_cast<double>(out.endings) / out.node_hours;
  const auto counts = live_counts(what);
  out.fewest = out.most = counts.front().second;
  for (const auto& [when, live] : counts) {
    if (when < what.end()) out.fewest = std::min(out.fewest, live);
    out.most = std::max(out.most, live);
  }
  return out;
}

} // namespace shoal::netem
