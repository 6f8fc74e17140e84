#include "tools/outcome_files.hpp"

#include "scenarios/record/provenance.hpp"
#include "scenarios/record/version.hpp"
#include "scenarios/schema/load.hpp"
#include "tools/outcome_plot.hpp"

#include <fmt/format.h>

namespace shoal::tools {

result<void> keep_outcome(const scenarios::run_directory& to, const std::string& title,
                          const scenarios::program_outcome& outcome, const std::string& printed,
                          const std::string& command) {
  for (const auto& [name, chart] : outcome.charts)
    if (auto done = to.write(name, outcome_svg(chart)); !done) return done;
  if (auto done = to.write("report.html", outcome_page(title, printed, outcome, command)); !done)
    return done;
  return to.write("summary.json", outcome.summary);
}

result<void> keep_run(const scenarios::run_directory& to, const scenarios::scenario& what,
                      const scenarios::program_outcome& outcome, const std::string& printed,
                      const std::string& build) {
  const scenarios::provenance made_by{
      std::string(scenarios::version()), {}, {}, outcome.stopped, build};
  if (auto done = to.write("run.yaml", to_yaml(what) + to_yaml(made_by)); !done) return done;
  return keep_outcome(to, what.name, outcome, printed,
                      fmt::format("shoal run {}", to.file("run.yaml").string()));
}

} // namespace shoal::tools
