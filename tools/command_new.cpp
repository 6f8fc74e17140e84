// shoal new NAME: a commented scenario to begin with.
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/schema/new_scenario.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>

namespace shoal::tools {

namespace {

namespace fs = std::filesystem;

struct new_arguments {
  std::string name;
  std::optional<std::string> peers, workload, churn, minutes;
  bool yes = false, force = false;
};

template <class T, class Parse>
bool take(const char* option, const std::optional<std::string>& text, std::optional<T>& into,
          Parse parse) {
  if (!text) return true;
  auto parsed = parse(*text);
  if (!parsed) {
    fmt::print(stderr, "{}: {}\n", option, parsed.error());
    return false;
  }
  into = *parsed;
  return true;
}

int make_new(const new_arguments& arguments) {
  namespace sc = scenarios;
  sc::new_scenario_wishes wishes;
  auto count_to = [](std::uint64_t most) {
    return [most](const std::string& text) { return sc::parse_count(text, most); };
  };
  bool good = take("--peers", arguments.peers, wishes.peers, count_to(sc::most_new_peers));
  good = take("--workload", arguments.workload, wishes.workload, sc::parse_workload) && good;
  good = take("--churn", arguments.churn, wishes.churn, sc::parse_churn) && good;
  good =
      take("--minutes", arguments.minutes, wishes.minutes, count_to(sc::most_new_minutes)) && good;
  if (!good) return exit_usage;

  fs::path file = arguments.name;
  if (file.extension() != ".yaml") file += ".yaml";
  const std::string name = file.stem().string();
  if (auto wrong = sc::name_error(name)) return fail(*wrong, exit_usage);
  std::error_code error;
  const auto status = fs::status(file, error);
  if (fs::is_directory(status)) return fail(fmt::format("'{}' is a directory", file.string()));
  if (fs::exists(status) && !arguments.force)
    return fail(fmt::format("'{}' exists; --force replaces it", file.string()));

  auto made = sc::with_defaults(name, wishes);
  if (!arguments.yes && isatty(STDIN_FILENO) != 0) {
    auto asked = sc::ask(name, wishes, std::cin, std::cerr);
    if (!asked) return fail(asked.error());
    made = *asked;
  }
  auto out = sc::output_file::create(file);
  if (!out) return fail(out.error());
  (*out)->write(sc::to_yaml(made));
  if (auto done = (*out)->commit(); !done) return fail(done.error());
  fmt::print("wrote {}; now: shoal run {}\n", file.string(), file.string());
  return exit_ok;
}

} // namespace

void add_new(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<new_arguments>();
  auto* command = app.add_subcommand("new", "write a commented scenario to begin with");
  command->add_option("name", arguments->name, "name of the scenario; the file is NAME.yaml")
      ->required()
      ->type_name("NAME");
  command->add_option("--peers", arguments->peers, "number of peers (8)")->type_name("N");
  command
      ->add_option("--workload", arguments->workload,
                   "transformer, timing, quadratic or logistic (transformer)")
      ->type_name("KIND");
  command->add_option("--churn", arguments->churn, "churn of the peers: none, some or heavy (none)")
      ->type_name("LEVEL");
  command->add_option("--minutes", arguments->minutes, "virtual time (10)")->type_name("M");
  command->add_flag("-y,--yes", arguments->yes,
                    "ask nothing, and use defaults for missing answers");
  command->add_flag("--force", arguments->force, "replace a file that exists");
  command->footer("On a terminal the command asks for missing answers.");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return make_new(*arguments); }; });
}

} // namespace shoal::tools
