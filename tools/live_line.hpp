// What is seen while a run goes on: one line that rewrites itself on a terminal, plain lines now and
// then elsewhere. Goes to stderr, so that --json stays clean.
#pragma once

#include <chrono>
#include <string>

#include "scenarios/stage/stage.hpp"

namespace shoal::tools {

class live_line {
 public:
  explicit live_line(bool terminal) : terminal_(terminal) {}
  ~live_line() { clear(); }

  void show(const scenarios::live_status& status);
  /// Takes the line away.
  void clear();

  /// The text, without control characters.
  static std::string text(const scenarios::live_status& status);
  /// The text in so many columns: gaps go first, then the end.
  static std::string fitted(const scenarios::live_status& status, std::size_t columns);

 private:
  bool terminal_;
  bool shown_ = false;
  std::string last_doing_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace shoal::tools
