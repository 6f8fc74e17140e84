// Reads churn traces in other published formats as a netem::trace. In all formats except `events`,
// `#` starts a comment.
// - csv: `peer,start,end`; see netem/trace.hpp.
// - fta: event_trace of the Failure Trace Archive, tab-separated, with the columns event_id,
//   component_id, node_id, platform_id, node_name, event_type, event_start_time, event_end_time,
//   event_end_reason. Type 1 means available and type 0 means not; other types are ignored. Time 0
//   is the earliest event. An end of NULL means the end of the trace. A node has its own name, or
//   node-<id>. Adjacent events make one session. The events of a node are in order and do not
//   overlap. Source: Kondo, Javadi, Iosup and Epema, "The Failure Trace Archive", CCGrid 2010.
// - simgrid: a profile of one host, in lines `time value`. The host is available if the value is
//   above 0, and before the first line. After `PERIODICITY n` or `LOOPAFTER n`, the profile repeats
//   n seconds after its last line. The state at its end then also holds before a first line that is
//   not at time 0.
// - counts: `time,count`, the number of nodes from that time on. Two lines may have the same time.
//   The format names no nodes. When the count falls, each node that was there before is equally
//   likely to end, by the seed (stream "trace.counts"). When the count rises, the nodes that have
//   been away longest return; at first these are node-0, node-1, ... So there are as many nodes as
//   the highest count, and every seed gives the same count at every time.
// - events: JSON lines `[ms, "add" | "remove", {"nodes": ["node-0"], "duration": ms}]`. Other words
//   than add and remove name no nodes. Source: the preemption logs of Parcae, Duan et al., NSDI
//   2024.
// - peers: `peers.csv` of a run directory, the sessions of an earlier run.
//
// Times without a unit are seconds; in `events` they are milliseconds. Sessions that are open at
// the end of a trace do not end.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/trace.hpp"

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::netem {

enum class trace_format { csv, fta, simgrid, counts, events, peers };

inline constexpr const char* trace_format_names = "csv, fta, simgrid, counts, events, peers";
std::string_view name_of(trace_format what);
std::optional<trace_format> trace_format_of(std::string_view name);

/// Guesses the format of a text; csv if no known format matches.
trace_format detect_trace_format(std::string_view beginning);

struct trace_options {
  std::optional<trace_format> format; ///< none: detected from the text
  std::string unit;       ///< for times without a unit: ms, s, min, h; empty: the format's
  std::uint64_t seed = 1; ///< for counts
  /// csv and peers: whether a host has this name; empty: all names are accepted.
  std::function<bool(std::string_view)> known;
};

/// Reads any format. `name` is the host of a simgrid profile.
trace_result read_trace_as(std::istream& in, const std::string& name, const trace_options& how);

/// Reads the trace in a file, or the traces of several files as one, in their order.
/// Errors: a file cannot be read; two files name the same peer, or have different loops; the first
/// problem, as 'file:line:column: error: message'.
result<trace> load_traces(std::span<const std::string> files, const trace_options& how);

/// The part of a trace to play, and its speed.
struct trace_window {
  /// Time 0 of the window in the trace. If the trace does not loop, earlier sessions are left out.
  duration offset{};
  double speed = 1;  ///< > 0; 10 plays ten times as fast
  bool loop = false; ///< repeats after end()
  bool operator==(const trace_window&) const = default;
};
trace windowed(const trace& what, const trace_window& how);

/// The first name in `what` that could not be read back from `format`, or nothing. Names are free
/// text, and columns cannot hold all names.
std::optional<std::string_view> unwritable_name(const trace& what, trace_format format);

/// Writes a trace that reads back as the same sessions; for counts, as the same numbers. A loop is
/// written once, except in simgrid.
/// Requires: not peers; for simgrid, exactly one peer; no unwritable_name().
void write_trace_as(std::ostream& out, const trace& what, trace_format format);

} // namespace shoal::netem
