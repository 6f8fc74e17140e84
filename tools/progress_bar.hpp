// The progress of a sweep: a bar that rewrites itself on a terminal, and plain lines now and then
// elsewhere. The bar goes to stderr, so that the output of --json stays clean.
#pragma once

#include "scenarios/sweep/cells.hpp"

#include <chrono>
#include <cstddef>
#include <string>

namespace shoal::tools {

/// A bar for the share of the work that is done, in [0, 1], and words behind it, in `columns`
/// columns. The words alone if both do not fit.
std::string bar_text(double share, const std::string& words, std::size_t columns);

class progress_bar {
public:
  /// `colour`: the terminal wants colours.
  explicit progress_bar(bool terminal, bool colour = false)
      : terminal_(terminal), colour_(terminal && colour) {}
  ~progress_bar() { clear(); }

  void show(const scenarios::sweep_progress& progress);
  /// Removes the bar.
  void clear();

  /// The text in `columns` columns, without control characters. `seconds`: time since the sweep
  /// began, by the wall clock.
  static std::string text(const scenarios::sweep_progress& progress, double seconds,
                          std::size_t columns);
  static std::string coloured(std::string line);

private:
  bool terminal_, colour_, shown_ = false;
  std::size_t last_ended_ = 0;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now(), last_{};
};

} // namespace shoal::tools
