#include "tools/runner_arguments.hpp"

#include "kernels/base/units.hpp"
#include "tools/build_identity.hpp"
#include "tools/exit_codes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>

namespace shoal::tools {

void runner_arguments::add_to(CLI::App& command, const std::string& until_help,
                              const std::string& workers_help) {
  command.add_option("-o,--out", out, "write the run directory here")->type_name("DIR");
  command.add_flag("--force", force, "replace the files of an earlier run in --out");
  command.add_option("--until", until, until_help)->type_name("TIME");
  command
      .add_option("--metrics", metrics,
                  "serve metrics to Prometheus here while it runs, as at 127.0.0.1:9464")
      ->type_name("HOST:PORT");
  command
      .add_option("--dashboard", dashboard,
                  "show the run in a browser while it goes on: a page at this address, as at "
                  ":8080, which only this machine reaches")
      ->type_name("HOST:PORT");
  command.add_flag("--no-report", no_report,
                   "do not write report.html; 'shoal report' can do so later");
  command.add_flag("--json", json, "print summary.json on stdout and nothing else there");
  command.add_flag("-q,--quiet", quiet, "no progress on stderr");
  command.add_option("-j,--workers", workers, workers_help)
      ->type_name("N")
      ->check(CLI::Range(1u, 1024u));
}

int runner_arguments::apply(scenarios::runner_options& into,
                            std::unique_ptr<scenarios::metrics_server>& server) const {
  into.out = out;
  into.force = force;
  into.threads = workers;
  into.build = build_identity();
  if (!until.empty()) {
    auto time = parse_duration(until);
    if (!time) {
      fmt::print(stderr, "error: --until: {}\n", time.error());
      return exit_usage;
    }
    into.until = *time;
  }
  if (!metrics.empty()) {
    auto listening = scenarios::metrics_server::listen(metrics);
    if (!listening) {
      fmt::print(stderr, "error: --metrics: {}\n", listening.error());
      return exit_bad_input;
    }
    server = std::move(*listening);
    into.on_metrics = [to = server.get()](const auto& values) { to->serve(values); };
  }
  return exit_ok;
}

int runner_arguments::attach_page(scenarios::runner_options& into,
                                  std::unique_ptr<run_page>& page) const {
  if (dashboard.empty() && (out.empty() || no_report)) return exit_ok;
  auto made = run_page::open(dashboard, no_report ? std::string{} : out);
  if (!made) {
    fmt::print(stderr, "error: --dashboard: {}\n", made.error());
    return exit_bad_input;
  }
  page = std::move(*made);
  // At the beginning, because the run may take hours.
  if (!page->missing().empty())
    fmt::print(stderr, "warning: there will be no report.html: {}\n", page->missing());
  page->attach(into);
  return exit_ok;
}

bool print_summary(const scenarios::summary& what, bool json,
                   const std::function<void()>& for_people) {
  if (json)
    std::fputs(scenarios::to_json(what).c_str(), stdout);
  else
    for_people();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  fmt::print(stderr, "error: cannot write to stdout\n");
  return false;
}

bool print_violations(const scenarios::summary& of) {
  bool any = false;
  for (const auto& [name, check] : of.invariants)
    if (check.violated > 0) {
      fmt::print(stderr, "error: invariant {} violated {} times, first {}\n", name, check.violated,
                 check.first_violation);
      any = true;
    }
  return any;
}

} // namespace shoal::tools
