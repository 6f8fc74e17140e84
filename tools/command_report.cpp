// shoal report DIR: the page of a run as one file.
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/page/page_file.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/shown_runs.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

namespace shoal::tools {

namespace {

struct report_arguments {
  std::string run, predicted, out;
};

int report(const report_arguments& arguments) {
  auto page = scenarios::load_page();
  if (!page) return fail(page.error());
  std::vector<std::string> paths{arguments.run};
  if (!arguments.predicted.empty()) paths.insert(paths.begin(), arguments.predicted);
  auto runs = shown_runs::read(paths);
  if (!runs) return fail(runs.error());
  std::vector<scenarios::reported_run> reported;
  for (const auto& run : runs->all()) reported.push_back({run.place, run.sections});
  const std::filesystem::path path = arguments.out.empty()
                                         ? std::filesystem::path(arguments.run) / "report.html"
                                         : std::filesystem::path(arguments.out);
  auto file = scenarios::output_file::create(path);
  if (!file) return fail(file.error());
  (*file)->write(scenarios::make_report(std::move(*page), reported));
  if (auto written = (*file)->commit(); !written) return fail(written.error());
  fmt::print("{}\n", path.string());
  return exit_ok;
}

} // namespace

void add_report(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<report_arguments>();
  auto* command =
      app.add_subcommand("report", "write the page of a run as one file that needs nothing else");
  command
      ->add_option(
          "RUN", arguments->run,
          "a run directory, or a folder of them (a folder of a cluster's nodes is one run)")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--predicted", arguments->predicted, "another run that this one is shown beside")
      ->type_name("DIR");
  command->add_option("-o,--out", arguments->out, "where to write it (default: DIR/report.html)")
      ->type_name("FILE");
  command->callback([arguments, &chosen] { chosen = [arguments] { return report(*arguments); }; });
}

} // namespace shoal::tools
