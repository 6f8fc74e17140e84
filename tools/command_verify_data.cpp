// shoal verify-data DIR: checks that every sample was used once, or that its fate was reported.
#include "scenarios/record/study_directory.hpp"
#include "scenarios/record/verify_data.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

namespace shoal::tools {

namespace {

int verify(const std::string& directory) {
  if (auto run = scenarios::require_history(directory, "ledger of samples"); !run)
    return fail(run.error());
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::path(directory) / "ledger.csv", error)) {
    const bool folder = std::filesystem::is_directory(directory, error);
    return fail(fmt::format("'{}' is no run directory ({})", directory,
                            folder ? "it has no ledger.csv" : "it is no directory"));
  }
  auto report = scenarios::verify_data(directory);
  for (const auto& error : report.errors) fmt::print(stderr, "{}\n", error);
  if (report.errors_left_out > 0) fmt::print(stderr, "... and {} more\n", report.errors_left_out);
  fmt::print("{} samples were issued in {} epochs: {} committed, {} partial, {} returned, {} "
             "leased, {} in flight\n",
             report.indices, report.epochs, report.committed, report.partial, report.returned,
             report.leased, report.in_flight);
  if (report.repeated_reported + report.disputed_reported > 0)
    fmt::print("reported: {} perhaps used twice, {} disputed\n", report.repeated_reported,
               report.disputed_reported);
  if (report.doubtful_used + report.doubtful_repeated > 0)
    fmt::print("reported: {} used once and {} again, of which only the rounds know: the ledger of "
               "a primary shard is lost\n",
               report.doubtful_used, report.doubtful_repeated);
  fmt::print("{}\n", report.ok() ? "every sample is accounted for exactly once"
                                 : "the ledger does not add up");
  return report.ok() ? exit_ok : exit_bad_input;
}

} // namespace

void add_verify_data(CLI::App& app, action& chosen) {
  auto directory = std::make_shared<std::string>();
  auto* command = app.add_subcommand(
      "verify-data", "prove from a run directory that no sample was lost or counted twice");
  command->add_option("directory", *directory, "a run directory")->required()->type_name("DIR");
  command->callback([directory, &chosen] { chosen = [directory] { return verify(*directory); }; });
}

} // namespace shoal::tools
