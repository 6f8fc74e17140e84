// The interface between the command line and a program that runs by itself
// (scenarios/programs/program.hpp). The program calls hooks while it runs and returns an outcome.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shoal::scenarios {

/// A program's current work in words, and the share of the whole work that is done, in [0, 1]. Many
/// programs do not know the share.
struct program_progress {
  std::string doing;
  std::optional<double> share{};

  program_progress(std::string what, std::optional<double> done = {})
      : doing(std::move(what)), share(done) {}
  /// The words alone, for hooks that show no share.
  operator const std::string&() const noexcept { return doing; }
};

struct program_hooks {
  /// Called while the program runs. False: stop early. May be empty.
  std::function<bool(const program_progress& now)> progress;
  /// Called with text for people as soon as it is known, line feeds included. May be empty.
  std::function<void(const std::string& text)> print;
};

/// Curves of values that fall from 1, by round, in panels below each other.
struct outcome_chart {
  struct curve {
    std::string name;
    std::vector<double> values; ///< by round, from round 0; relative to the first
    bool dashed = false;        ///< theory
    std::size_t colour = 0;     ///< equal numbers have equal colours
  };
  struct panel {
    std::string title;
    std::vector<curve> curves;
  };
  std::vector<panel> panels;
  double least = 1e-12; ///< smaller values are drawn at the bottom
};

struct program_outcome {
  std::string summary; ///< JSON, for summary.json and --json
  std::string closing; ///< text for people, after all that was printed; may be empty
  std::vector<std::pair<std::string, outcome_chart>> charts; ///< by file name
  std::vector<std::string> errors; ///< the run has failed if there are any; one line each
  bool stopped = false;            ///< by `progress`
};

} // namespace shoal::scenarios
