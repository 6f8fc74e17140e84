// Churn traces as others publish them, as a netem::trace. `#` starts a comment in all of them but
// `events`.
//
// csv      `peer,start,end`, netem/trace.hpp.
// fta      event_trace of the Failure Trace Archive, tab-separated: event_id component_id node_id
// platform_id node_name
//          event_type event_start_time event_end_time event_end_reason. Type 1: available; 0: not;
//          others are passed over. Time 0 is the earliest event. NULL as an end: to the end. A node
//          is called by its name, or node-<id>; what touches is one session; the events of a node
//          are in order and do not overlap. Source: Kondo, Javadi, Iosup and Epema, "The Failure
//          Trace Archive", CCGrid 2010.
// simgrid  A profile of one host: lines `time value`, more than 0: available; before the first line
// it is. After
//          `PERIODICITY n` or `LOOPAFTER n` it begins again n seconds after the last line. Then
//          what is so at its end is so before a first line that is not at 0.
// counts   `time,count`: so many nodes from then on; two lines may have one time. It names no
// nodes. Rule: when
//          the count falls, each of those that were there before is equally likely to end, by the
//          seed (stream "trace.counts"); when it rises, those come that are away longest, at first
//          node-0, node-1, ... So there are as many nodes as the highest count, and every seed
//          gives the same number at every time.
// events   JSON lines `[ms, "add" | "remove", {"nodes": ["node-0"], "duration": ms}]`; other words
// name no nodes.
//          Source: the preemption logs of Parcae, Duan et al., NSDI 2024.
// peers    `peers.csv` of a run directory: who was there in an earlier run.
//
// Times without a unit are seconds, in events milliseconds. Nodes that are there at the end stay.
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

/// What the text looks like; csv if it looks like nothing known.
trace_format detect_trace_format(std::string_view beginning);

struct trace_options {
  std::optional<trace_format> format; ///< none: what it looks like
  std::string unit;                   ///< of times without one: ms, s, min, h; empty: the format's
  std::uint64_t seed = 1;             ///< of counts
  std::function<bool(std::string_view)>
      known; ///< csv and peers: whether a host is called so; empty: all are
};

/// Reads any format. `name`: of the host of a simgrid profile.
trace_result read_trace_as(std::istream& in, const std::string& name, const trace_options& how);

/// The trace in a file, or the traces of several as one, in their order.
/// Errors: a file cannot be read; two name the same peer, or loop differently; the first problem,
/// as 'file:line:column: error: message'.
result<trace> load_traces(std::span<const std::string> files, const trace_options& how);

/// What part of a trace is played, and how fast.
struct trace_window {
  duration offset{}; ///< time 0 is here in the trace; of one that does not loop, what ended before
                     ///< is left out
  double speed = 1;  ///< > 0; 10: ten times as fast
  bool loop = false; ///< from the beginning again after end()
  bool operator==(const trace_window&) const = default;
};
trace windowed(const trace& what, const trace_window& how);

/// The first name in `what` that would not read back from `format`: names are free text, which
/// columns cannot hold all of.
std::optional<std::string_view> unwritable_name(const trace& what, trace_format format);

/// Writes what reads back as the same sessions; of counts, as the same numbers.
/// Requires: not peers; for simgrid, exactly one peer; no unwritable_name. What loops is written
/// once round, but for simgrid.
void write_trace_as(std::ostream& out, const trace& what, trace_format format);

} // namespace shoal::netem
