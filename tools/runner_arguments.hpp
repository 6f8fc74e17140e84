// The common part of the commands that run a runner (run, node): the options of the run, its
// metrics, and its report.
#pragma once

#include "scenarios/observe/metrics_server.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/runner/runner.hpp"
#include "tools/run_page.hpp"

#include <functional>
#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace shoal::tools {

struct runner_arguments {
  std::string out, until, metrics, dashboard;
  bool force = false, no_report = false, json = false, quiet = false;
  unsigned workers = 0;

  /// Adds the options to `command`. `until` and `workers` are help texts.
  void add_to(CLI::App& command, const std::string& until_help, const std::string& workers_help);
  /// Sets the given options, and serves metrics from `server` if the user asks for them. Returns
  /// exit_ok, or another status after printing the error. Requires: `server` outlives the runner.
  int apply(scenarios::runner_options& into,
            std::unique_ptr<scenarios::metrics_server>& server) const;
  /// Opens the page of the run, if it is served or its report is written. Call it last, because it
  /// calls the functions that on_status already has. Returns exit_ok, or another status after
  /// printing the error. Requires: the page outlives the runner.
  int attach_page(scenarios::runner_options& into, std::unique_ptr<run_page>& page) const;
};

/// Prints on stdout, as JSON or by `for_people`. Returns false after printing an error if writing
/// failed.
bool print_summary(const scenarios::summary& what, bool json,
                   const std::function<void()>& for_people);

/// Prints violated invariants on stderr. Returns whether there are any.
bool print_violations(const scenarios::summary& of);

} // namespace shoal::tools
