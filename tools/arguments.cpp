#include "tools/arguments.hpp"

#include "scenarios/programs/program.hpp"
#include "scenarios/schema/diagnostic.hpp"
#include "scenarios/schema/load.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace shoal::tools {

int fail(const std::string& why, int status) {
  fmt::print(stderr, "error: {}\n", why);
  return status;
}

void scenario_arguments::add_to(CLI::App& command) {
  command.add_option("scenario", file, "YAML file of the scenario")->required()->type_name("FILE");
  command
      .add_option("--set", sets, "override an option, as in --set peers.home.count=12; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--seed", seed, "the same as --set seed=N")->type_name("N");
  command.add_option("--world", world, "the same as --set world=NAME")->type_name("NAME");
}

std::optional<scenarios::scenario> scenario_arguments::load() const {
  auto all = sets;
  if (seed) all.push_back("seed=" + *seed);
  if (world) all.push_back("world=" + *world);
  auto loaded = scenarios::load(file, all);
  print_diagnostics(loaded.errors);
  print_diagnostics(loaded.warnings);
  return std::move(loaded.value);
}

void print_diagnostics(const std::vector<scenarios::diagnostic>& what) {
  for (const auto& each : what)
    std::fputs(scenarios::render(each, wants_colour(STDERR_FILENO)).c_str(), stderr);
}

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0) return {};
  std::string out = name;
  return out.substr(0, out.find('.'));
}

bool runs_on_nodes(const scenarios::scenario& what, const std::string& file) {
  const auto& program = what.program.definition();
  if (program.on_runner()) return true;
  fail(fmt::format("{} is {}; nodes train", file, program.title));
  return false;
}

void unknown_word(const char* option, const char* what, const std::string& word,
                  const std::vector<std::string>& known) {
  fmt::print(
      stderr, "error: {}: unknown {} '{}'; {}\n", option, what, word,
      scenarios::did_you_mean(word, known, fmt::format("they are {}", fmt::join(known, ", "))));
}

bool wants_colour(int descriptor) {
  return isatty(descriptor) != 0 && std::getenv("NO_COLOR") == nullptr;
}

} // namespace shoal::tools
