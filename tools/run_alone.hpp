// 'shoal run' of a program that runs by itself (scenarios/programs/program.hpp). The program's text
// goes to stdout, its errors to stderr. With `out`, run.yaml, summary.json and charts are kept.
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

/// Hooks for the terminal: text on stdout, unless `json`; progress on one line of stderr, unless
/// `json` or `quiet`; Ctrl-C stops the program.
class terminal_hooks {
public:
  terminal_hooks(bool json, bool quiet);
  ~terminal_hooks();
  terminal_hooks(const terminal_hooks&) = delete;
  terminal_hooks& operator=(const terminal_hooks&) = delete;
  const scenarios::program_hooks& hooks() const noexcept { return hooks_; }

private:
  scenarios::program_hooks hooks_;
  bool clears_ = false;
};

} // namespace shoal::tools
