// A churn trace: the sessions of each host, as CSV.
//   peer,start,end            the header is required
//   home-0,0,90               seconds from the host's `start`, fractions allowed
//   home-1,500ms,2h           or with a unit (kernels/base/units.hpp)
//   home-0,120,300  # back    sessions of one peer are in order and do not overlap
// A session is the interval [start, end); an end may be 'forever'. Rows of different peers may come
// in any order. Blank lines, CRLF and text after '#' are ignored. The reader reports all faults
// (the first `most_trace_problems`), each with its line and column. netem/trace_formats.hpp reads
// other formats.
// Complexity: O(rows) time; memory for the sessions only, as the text is read line by line.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/churn.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shoal::netem {

inline constexpr std::size_t most_trace_problems = 20;
/// a longer period would overflow the next repetition
inline constexpr duration longest_loop = forever / 4;
inline constexpr std::size_t longest_trace_line = 1000; ///< bytes

class trace {
public:
  struct peer {
    std::string name;
    std::shared_ptr<std::vector<session>> sessions; ///< never null
  };

  /// The peers in the order of their first rows.
  const std::vector<peer>& peers() const noexcept { return peers_; }
  /// The sessions of a peer; empty if the trace does not name the peer.
  std::shared_ptr<const std::vector<session>> sessions_of(std::string_view name) const;
  /// Appends a session. Requires: the session follows the peer's last one, as in a file.
  void add(std::string_view peer, session what);
  /// Adds a peer without sessions, unless the trace has the peer.
  void add(std::string_view peer);

  /// The end of the observation. The trace says nothing about later times.
  duration end() const noexcept { return end_; }
  /// Moves end() to `when` if end() is earlier.
  void seen_until(duration when) { end_ = std::max(end_, when); }
  /// The period with which the trace repeats; 0: never. Sessions end before the period does.
  duration loop() const noexcept { return loop_; }
  /// Requires: end() <= period <= longest_loop. Cuts sessions that have no end.
  void set_loop(duration period);

  bool operator==(const trace& other) const;

private:
  friend class trace_reader;

  std::vector<peer> peers_;
  std::unordered_map<std::string, std::size_t> index_; // never iterated
  duration end_{}, loop_{};
};

/// One fault of a trace.
struct trace_problem {
  std::size_t line = 1, column = 1, length = 1; ///< 1-based, in bytes
  std::string message;
  std::string unknown_peer; ///< set if an unknown peer is the fault
  std::string source_line;
};

struct trace_result {
  trace value; ///< complete if there are no problems
  std::vector<trace_problem> problems;
};

/// Reads a trace. `known` says whether a host of that name exists; if empty, all names are
/// accepted. `unit` applies to times without a unit.
trace_result read_trace(std::istream& in, const std::function<bool(std::string_view)>& known = {},
                        const std::string& unit = "s");

/// Errors: the file cannot be read; the first problem, as 'file:line:column: error: message'.
result<trace> load_trace(const std::string& path,
                         const std::function<bool(std::string_view)>& known = {});

/// Writes the trace with units. read_trace() reads an equal trace back.
void write_trace(std::ostream& out, const trace& what);

} // namespace shoal::netem
