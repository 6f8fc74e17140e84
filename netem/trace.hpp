// Churn traces: which host was there when, as CSV.
//   peer,start,end            the header is required
//   home-0,0,90               seconds from the host's `start`, fractions allowed
//   home-1,500ms,2h           or with a unit (kernels/base/units.hpp)
//   home-0,120,300  # back    a peer's sessions in order, [start, end), without overlap; an end may
//   be 'forever'
// Rows of different peers may stand in any order. Blank lines, CRLF and what follows '#' are passed
// over. What is wrong is reported all at once (the first `most_trace_problems`), each with its line
// and column. Other formats: netem/trace_formats.hpp. Complexity: O(rows) time; memory for the
// sessions alone, the text is read line by line.
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
inline constexpr duration longest_loop = forever / 4;   ///< so that the next one can be reckoned
inline constexpr std::size_t longest_trace_line = 1000; ///< bytes

class trace {
public:
  struct peer {
    std::string name;
    std::shared_ptr<std::vector<session>> sessions; ///< never null
  };

  /// In the order of their first rows.
  const std::vector<peer>& peers() const noexcept { return peers_; }
  /// The sessions of a peer; empty if the trace does not name it.
  std::shared_ptr<const std::vector<session>> sessions_of(std::string_view name) const;
  /// Appends. Requires: as in a file, after the peer's last session.
  void add(std::string_view peer, session what);
  /// A peer without sessions, if it is new.
  void add(std::string_view peer);

  /// When watching ended: what the trace says of later times is not known.
  duration end() const noexcept { return end_; }
  /// Moves end() there if it is earlier.
  void seen_until(duration when) { end_ = std::max(end_, when); }
  /// After so long it begins again; 0: never. Sessions end before.
  duration loop() const noexcept { return loop_; }
  /// Requires: >= end(), <= longest_loop. Cuts the sessions that have no end.
  void set_loop(duration period);

  bool operator==(const trace& other) const;

private:
  friend class trace_reader;

  std::vector<peer> peers_;
  std::unordered_map<std::string, std::size_t> index_; // never iterated
  duration end_{}, loop_{};
};

/// One thing wrong with a trace.
struct trace_problem {
  std::size_t line = 1, column = 1, length = 1; ///< 1-based, in bytes
  std::string message;
  std::string unknown_peer; ///< where that is what is wrong
  std::string source_line;
};

struct trace_result {
  trace value; ///< complete if there are no problems
  std::vector<trace_problem> problems;
};

/// `known` says whether a host of that name exists; empty: every name will do. `unit`: of times
/// without one.
trace_result read_trace(std::istream& in, const std::function<bool(std::string_view)>& known = {},
                        const std::string& unit = "s");

/// Errors: the file cannot be read; the first problem, as 'file:line:column: error: message'.
result<trace> load_trace(const std::string& path,
                         const std::function<bool(std::string_view)>& known = {});

/// Writes what read_trace() reads back as an equal trace, with units.
void write_trace(std::ostream& out, const trace& what);

} // namespace shoal::netem
