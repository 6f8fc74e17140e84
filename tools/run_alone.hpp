// 'shoal run' of a program that runs by itself (scenarios/programs/program.hpp). The program's text
// goes to stdout, its errors to stderr. With `out`, run.yaml, summary.json, charts and a page are
// kept.
#pragma once

#include "scenarios/programs/program_run.hpp"
#include "scenarios/schema/scenario.hpp"

#include <memory>
#include <string>

namespace shoal::tools {

struct run_alone_options {
  std::string out;    ///< empty: nothing is kept
  bool force = false; ///< replace the files of an earlier run in `out`
  bool json = false, quiet = false;
};

/// Returns the exit code. Requires: a program with `run`.
int run_alone(const scenarios::scenario& what, const run_alone_options& options);

/// Hooks for the terminal. Text goes to stdout, unless `json`. Progress is one line of stderr,
/// unless `json` or `quiet`: a bar if the program knows its share. Ctrl-C stops the program.
class terminal_hooks {
public:
  terminal_hooks(bool json, bool quiet);
  ~terminal_hooks();
  terminal_hooks(const terminal_hooks&) = delete;
  terminal_hooks& operator=(const terminal_hooks&) = delete;
  const scenarios::program_hooks& hooks() const noexcept { return hooks_; }
  /// All text so far, also with `json`.
  const std::string& printed() const noexcept { return printed_; }

private:
  scenarios::program_hooks hooks_;
  std::string printed_;
  bool clears_ = false;
};

} // namespace shoal::tools
