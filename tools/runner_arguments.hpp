// What the commands that run a runner (run, node) have in common: options of the run, its metrics,
// and how it is told how the run went.
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

  /// Options for `command`. `until`, `workers`: what the help says of these.
  void add_to(CLI::App& command, const std::string& until_help, const std::string& workers_help);
  /// Sets what was given, and serves metrics from `server` if they are asked for; it outlives the
  /// runner. exit_ok, or what is wrong was printed.
  int apply(scenarios::runner_options& into,
            std::unique_ptr<scenarios::metrics_server>& server) const;
  /// The page of the run, if it is to be served or its report written. Call last: it calls what is
  /// in on_status already. It outlives the runner. exit_ok, or what is wrong was printed.
  int attach_page(scenarios::runner_options& into, std::unique_ptr<run_page>& page) const;
};

/// On stdout, as JSON or by `for_people`. False: it could not be written, which was said.
bool print_summary(const scenarios::summary& what, bool json,
                   const std::function<void()>& for_people);

/// On stderr. Whether there are any.
bool print_violations(const scenarios::summary& of);

} // namespace shoal::tools
