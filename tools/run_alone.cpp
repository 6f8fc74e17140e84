#include "tools/run_alone.hpp"

#include "scenarios/observe/run_directory.hpp"
#include "scenarios/programs/program.hpp"
#include "tools/arguments.hpp"
#include "tools/build_identity.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/outcome_files.hpp"
#include "tools/terminal.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

namespace shoal::tools {

namespace {

using scenarios::program_outcome;
using scenarios::scenario;

void clear_line() {
  fmt::print(stderr, "\r\033[K");
}

void print_end(const program_outcome& outcome, const std::string& out) {
  if (!outcome.closing.empty()) fmt::print("\n{}", outcome.closing);
  if (out.empty())
    fmt::print("\nNothing was kept; --out DIR keeps the figures and their curves\n");
  else
    fmt::print("\nEverything is in {}\n", out);
}

} // namespace

terminal_hooks::terminal_hooks(bool json, bool quiet) {
  const auto columns = json || quiet ? std::nullopt : terminal_columns(fileno(stderr));
  clears_ = columns.has_value();
  hooks_.progress = [columns](const std::string& doing) {
    if (columns) fmt::print(stderr, "\r\033[K{}", one_line(doing, *columns - 1));
    return !interrupted();
  };
  hooks_.print = [json, clears = clears_](const std::string& text) {
    if (json) return;
    if (clears) clear_line();
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  };
}

terminal_hooks::~terminal_hooks() {
  if (clears_) clear_line();
}

int run_alone(const scenario& what, const run_alone_options& options) {
  std::optional<scenarios::run_directory> directory;
  if (!options.out.empty()) {
    if (auto free = scenarios::run_directory::check_free(options.out, options.force); !free)
      return fail(free.error());
    auto made = scenarios::run_directory::create(options.out, options.force);
    if (!made) return fail(made.error(), exit_run_failed);
    directory = std::move(*made);
  }
  catch_interrupts();
  const auto outcome = [&] {
    const terminal_hooks terminal(options.json, options.quiet);
    return what.program.definition().run(what, terminal.hooks());
  }();
  if (!outcome) return fail(outcome.error(), exit_run_failed);
  if (directory)
    if (auto kept = keep_outcome(*directory, what, *outcome, build_identity()); !kept)
      return fail(kept.error(), exit_run_failed);
  if (options.json)
    std::fputs(outcome->summary.c_str(), stdout);
  else
    print_end(*outcome, options.out);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return fmt::print(stderr, "error: cannot write to stdout\n"), exit_run_failed;
  if (outcome->stopped)
    fmt::print(stderr, "interrupted: {} was ended early\n", what.program.definition().title);
  for (const auto& error : outcome->errors) fmt::print(stderr, "error: {}\n", error);
  if (!outcome->errors.empty()) return exit_run_failed;
  return outcome->stopped ? exit_interrupted : exit_ok;
}

} // namespace shoal::tools
