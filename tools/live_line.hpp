// The progress of a run: one line that rewrites itself on a terminal, and plain lines now and then
// elsewhere. The line goes to stderr, so that the output of --json stays clean.
#pragma once

#include "scenarios/runner/runner.hpp"

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace shoal::tools {

class live_line {
public:
  /// `colour`: the terminal wants colours.
  explicit live_line(bool terminal, bool colour = false)
      : terminal_(terminal), colour_(terminal && colour) {}
  ~live_line() { clear(); }

  void show(const scenarios::live_status& status);
  /// Removes the line.
  void clear();

  /// The current speed.
  struct pace {
    double samples_per_second = 0; ///< per second of the run's own time
    double times_real_time = 0;    ///< seconds of the run's own time per second of the wall clock
  };
  /// The text, without control characters.
  static std::string text(const scenarios::live_status& status,
                          const std::optional<pace>& now = {});
  /// The text in `columns` columns. The speed is dropped first, then gaps, then the last pieces.
  static std::string fitted(const scenarios::live_status& status, std::size_t columns,
                            const std::optional<pace>& now = {});
  /// Failures in red and yellow, the most important figures in bold.
  static std::string coloured(std::string line);

private:
  struct seen {
    double wall_seconds = 0, seconds = 0;
    std::uint64_t samples = 0;
  };
  std::optional<pace> pace_at(const scenarios::live_status& status);

  bool terminal_, colour_;
  std::deque<seen> seen_; // reports of the last seconds
  bool shown_ = false;
  std::string last_doing_;
  std::chrono::steady_clock::time_point last_{};
};

} // namespace shoal::tools
