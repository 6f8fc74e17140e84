// Churn traces in every format, and line traces. A trace that was read is ordered, and reads back
// after it was written.
#include "netem/line_trace.hpp"
#include "netem/trace_formats.hpp"
#include "netem/trace_statistics.hpp"
#include "tests/fuzz/targets.hpp"

#include <sstream>

namespace shoal::fuzz {

namespace {

using namespace netem;

void check(const std::vector<trace_problem>& problems) {
  must(problems.size() <= most_trace_problems, "no flood of problems");
  for (const auto& problem : problems)
    must(problem.line >= 1 && problem.column >= 1 && !problem.message.empty(),
         "problems have a place and words");
}

void check(const trace& what) {
  for (const auto& peer : what.peers()) {
    duration before{};
    for (const auto& s : *peer.sessions) {
      must(s.start >= before && s.start < s.end, "sessions are in order");
      must(what.loop() == duration::zero() || s.end <= what.loop(),
           "sessions end before a loop does");
      before = s.end;
    }
  }
}

} // namespace

void traces(bytes input) {
  front from(input);
  const auto how = from.byte();
  std::istringstream in{std::string(text_of(from.rest()))};
  if (how % 8 == 7) {
    const auto read = read_line_trace(in);
    check(read.problems);
    duration before{};
    for (const auto& change : read.changes) {
      must(change.at >= before, "changes are in order");
      must(!change.loss || (*change.loss >= 0 && *change.loss < 1), "a loss is a share");
      before = change.at;
    }
    return;
  }
  // A few digits make so many nodes that they take a second: as it is said of them.
  if (how % 8 == 3 || how % 8 == 6) {
    std::size_t digits = 0;
    for (const char c : text_of(from.rest()))
      if (digits = c >= '0' && c <= '9' ? digits + 1 : 0; digits == 5) return;
  }
  trace_options options;
  if (how % 8 < 6)
    options.format = static_cast<trace_format>(how % 8); // 6 and 7: the format is recognized
  const char* units[] = {"", "ms", "min", "h"};
  options.unit = units[how / 8 % 4];
  const auto read = read_trace_as(in, "host", options);
  check(read.problems);
  if (!read.problems.empty()) return;
  check(read.value);
  static_cast<void>(statistics_of(read.value));
  const auto part = windowed(
      read.value,
      {.offset = std::chrono::seconds(how), .speed = how % 2 == 0 ? 1.0 : 2.5, .loop = how >= 128});
  check(part);
  for (const auto format :
       {trace_format::fta, trace_format::simgrid, trace_format::counts, trace_format::events}) {
    std::ostringstream other;
    if (format != trace_format::simgrid || read.value.peers().size() == 1)
      write_trace_as(other, read.value, format);
  }
  if (unwritable_name(read.value, trace_format::csv)) return;
  std::stringstream text;
  write_trace_as(text, read.value, trace_format::csv);
  if (read.value.loop() > duration::zero()) return; // written once round
  const auto again = read_trace_as(
      text, "host", {.format = trace_format::csv, .unit = {}, .seed = 1, .known = {}});
  std::size_t sessions = 0;
  for (const auto& peer : read.value.peers()) sessions += peer.sessions->size();
  must(again.problems.empty() == (sessions > 0), "what is written reads back");
  for (const auto& peer : read.value.peers())
    must(*again.value.sessions_of(peer.name) == *peer.sessions, "the same sessions read back");
}

} // namespace shoal::fuzz
