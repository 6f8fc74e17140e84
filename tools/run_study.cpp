#include "tools/run_study.hpp"

#include "scenarios/compare/provenance.hpp"
#include "scenarios/compare/version.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/schema/describe.hpp"
#include "scenarios/schema/load.hpp"
#include "tools/arguments.hpp"
#include "tools/averaging_report.hpp"
#include "tools/build_identity.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

namespace shoal::tools {

namespace {

using json = nlohmann::ordered_json;
using scenarios::scenario;
using scenarios::study_figures;

std::string summary_of(const scenario& what, const study_figures& figures) {
  json out{{"scenario", what.name}};
  out.update(head_json(*what.study, what.seed));
  out["failures"] = json::array();
  for (const auto& cell : figures.cells) {
    if (out["failures"].empty() || out["failures"].back()["failure"] != cell.what.failure)
      out["failures"].push_back({{"failure", cell.what.failure}, {"strategies", json::array()}});
    out["failures"].back()["strategies"].push_back(as_json(cell));
  }
  out["expectations"] = json::array();
  for (const auto& e : figures.expectations) out["expectations"].push_back(as_json(e));
  return out.dump(2) + "\n";
}

result<void> keep(const scenarios::run_directory& to, const scenario& what,
                  const study_figures& figures) {
  const scenarios::provenance made_by{
      std::string(scenarios::version()), {}, {}, figures.stopped, build_identity()};
  if (auto done = to.write("run.yaml", to_yaml(what) + to_yaml(made_by)); !done) return done;
  if (auto done = to.write("curves.svg", curves_svg(*what.study, figures.cells)); !done)
    return done;
  return to.write("summary.json", summary_of(what, figures));
}

/// Says on stderr what is wrong with the figures. Returns whether anything is.
bool complain(const study_figures& figures) {
  bool wrong = false;
  for (const auto& e : figures.expectations) {
    if (e.met() || !e.measured) continue;
    fmt::print(
        stderr,
        "error: expect: {} at failure {} took {:.2f} rounds to {:g}, wanted {:.2f} +- {:.2f}\n",
        e.wanted.strategy, e.wanted.failure, *e.measured, e.wanted.below, e.rounds, e.within);
    wrong = true;
  }
  for (const auto& cell : figures.cells) {
    const auto& f = cell.figures;
    if (f.misbehaved + f.bypassed == 0) continue;
    fmt::print(stderr,
               "error: a defect of Shoal: {} at failure {}: {} messages misbehaved, {} bypassed "
               "the network\n",
               cell.what.strategy->name, cell.what.failure, f.misbehaved, f.bypassed);
    wrong = true;
  }
  return wrong;
}

void print_end(const study_figures& figures, const std::string& out) {
  if (!figures.expectations.empty()) fmt::print("\n{}", expectations_text(figures.expectations));
  if (out.empty())
    fmt::print("\nNothing was kept; --out DIR keeps the figures and their curves\n");
  else
    fmt::print("\nEverything is in {}\n", out);
}

} // namespace

int run_study(const scenario& what, const study_run_options& options) {
  std::optional<scenarios::run_directory> directory;
  if (!options.out.empty()) {
    if (auto free = scenarios::run_directory::check_free(options.out, options.force); !free)
      return fail(free.error());
    auto made = scenarios::run_directory::create(options.out, options.force);
    if (!made) return fail(made.error(), exit_run_failed);
    directory = std::move(*made);
  }
  catch_interrupts();
  const auto figures =
      run_study_on_terminal(*what.study, what.seed, {.json = options.json, .quiet = options.quiet});
  if (!figures) return fail(figures.error(), exit_run_failed);
  if (directory)
    if (auto kept = keep(*directory, what, *figures); !kept)
      return fail(kept.error(), exit_run_failed);
  if (options.json)
    std::fputs(summary_of(what, *figures).c_str(), stdout);
  else
    print_end(*figures, options.out);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return fmt::print(stderr, "error: cannot write to stdout\n"), exit_run_failed;
  if (figures->stopped) fmt::print(stderr, "interrupted: the study was ended early\n");
  if (complain(*figures)) return exit_run_failed;
  return figures->stopped ? exit_interrupted : exit_ok;
}

} // namespace shoal::tools
