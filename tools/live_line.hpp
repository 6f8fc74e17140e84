// What is seen while a run goes on: one line that rewrites itself on a terminal, plain lines now
// and then elsewhere. Goes to stderr, so that --json stays clean.
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
  /// Takes the line away.
  void clear();

  /// How fast it goes just now.
  struct pace {
    double samples_per_second = 0; ///< of the run's own time
    double times_real_time = 0;    ///< the run's own time by the wall clock's
  };
  /// The text, without control characters.
  static std::string text(const scenarios::live_status& status,
                          const std::optional<pace>& now = {});
  /// The text in so many columns: the pace goes first, then gaps, then what stands last.
  static std::string fitted(const scenarios::live_status& status, std::size_t columns,
                            const std::optional<pace>& now = {});
  /// What went wrong in red and yellow, what matters most in bold.
  static std::string coloured(std::string line);

private:
  struct seen {
    double wall_seconds = 0, seconds = 0;
    std::uint64_t samples = 0;
  };
  std::optional<pace> pace_at(const scenarios::live_status& status);

  bool terminal_, colour_;
  std::deque<seen> seen_; // of the last seconds
  bool shown_ = false;
  std::string last_doing_;
  std::chrono::steady_clock::time_point last_{};
};

} // namespace shoal::tools
