#include "tools/run_alone.hpp"

#include "scenarios/observe/run_directory.hpp"
#include "scenarios/programs/program.hpp"
#include "tools/arguments.hpp"
#include "tools/build_identity.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/outcome_files.hpp"
#include "tools/progress_bar.hpp"
#include "tools/terminal.hpp"

#include <fmt/format.h>

#include <chrono>
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
    fmt::print("\nEverything is in {}; report.html shows it\n", out);
}

std::string progress_text(const scenarios::program_progress& now, double seconds,
                          std::size_t columns) {
  if (!now.share || *now.share <= 0) return one_line(now.doing, columns);
  const auto words = now.doing + "  " + eta_text(seconds, *now.share, 1 - *now.share);
  return bar_text(*now.share, words, columns);
}

} // namespace

terminal_hooks::terminal_hooks(bool json, bool quiet) {
  const auto columns = json || quiet ? std::nullopt : terminal_columns(fileno(stderr));
  clears_ = columns.has_value();
  hooks_.progress =
      [columns, begun = std::chrono::steady_clock::now()](const scenarios::program_progress& now) {
        const auto seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
        if (columns) fmt::print(stderr, "\r\033[K{}", progress_text(now, seconds, *columns - 1));
        return !interrupted();
      };
  hooks_.print = [this, json, clears = clears_](const std::string& text) {
    printed_ += text;
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
  std::string printed;
  const auto outcome = [&] {
    const terminal_hooks terminal(options.json, options.quiet);
    auto out = what.program.definition().run(what, terminal.hooks());
    printed = terminal.printed();
    return out;
  }();
  if (!outcome) return fail(outcome.error(), exit_run_failed);
  if (directory)
    if (auto kept = keep_run(*directory, what, *outcome, printed, build_identity()); !kept)
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
