// shoal new NAME: a commented scenario to begin with, or a swarm for friends.
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/schema/new_scenario.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/new_from_page.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <utility>

namespace shoal::tools {

namespace {

namespace fs = std::filesystem;

struct new_arguments {
  std::string name, from;
  std::optional<std::string> peers, workload, churn, minutes;
  std::optional<std::string> text, address, friends, steps, page;
  bool yes = false, force = false, no_start = false;
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

/// Options of the other kind of new thing would have no effect.
int refuse_other(const new_arguments& arguments) {
  const bool page = arguments.from == "page";
  const std::pair<const char*, bool> others[] = {
      {"--peers", page && arguments.peers},       {"--churn", page && arguments.churn},
      {"--minutes", page && arguments.minutes},   {"--text", !page && arguments.text},
      {"--address", !page && arguments.address},  {"--friends", !page && arguments.friends},
      {"--steps", !page && arguments.steps},      {"--page", !page && arguments.page},
      {"--no-start", !page && arguments.no_start}};
  for (const auto& [name, given] : others)
    if (given)
      return fail(page ? fmt::format("{} does not go with --from page", name)
                       : fmt::format("{} needs --from page", name),
                  exit_usage);
  return exit_ok;
}

int make_new(const new_arguments& arguments) {
  namespace sc = scenarios;
  if (!arguments.from.empty() && arguments.from != "page") {
    unknown_word("--from", "beginning", arguments.from, {"page"});
    return exit_usage;
  }
  if (const int code = refuse_other(arguments); code != exit_ok) return code;
  if (arguments.from == "page")
    return new_from_page(arguments.name, {arguments.workload, arguments.text, arguments.address,
                                          arguments.friends, arguments.steps, arguments.page,
                                          arguments.yes, !arguments.no_start, arguments.force});
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
  auto* command = app.add_subcommand("new", "write a scenario to begin with, or begin a swarm");
  command->add_option("name", arguments->name, "name of the scenario; the file is NAME.yaml")
      ->required()
      ->type_name("NAME");
  command
      ->add_option("--from", arguments->from,
                   "'page': begin a swarm with its keys, its page and instructions for friends, in "
                   "the folder NAME")
      ->type_name("KIND");
  command->add_option("--peers", arguments->peers, "number of peers (8)")->type_name("N");
  command
      ->add_option("--workload", arguments->workload,
                   "transformer, timing, quadratic or logistic (transformer)")
      ->type_name("KIND");
  command->add_option("--churn", arguments->churn, "churn of the peers: none, some or heavy (none)")
      ->type_name("LEVEL");
  command->add_option("--minutes", arguments->minutes, "virtual time (10)")->type_name("M");
  command
      ->add_option("--text", arguments->text,
                   "with --from page: the text that the model learns: a file, folder or pattern")
      ->type_name("FILES");
  command
      ->add_option("--address", arguments->address,
                   "with --from page: where friends reach this computer, at this port and the next "
                   "(127.0.0.1:7000)")
      ->type_name("HOST:PORT");
  command->add_option("--friends", arguments->friends, "with --from page: the expected friends (2)")
      ->type_name("N");
  command->add_option("--steps", arguments->steps, "with --from page: steps to the end (1000)")
      ->type_name("N");
  command
      ->add_option("--page", arguments->page,
                   "with --from page: where the page is served (127.0.0.1:8080)")
      ->type_name("HOST:PORT");
  command->add_flag("--no-start", arguments->no_start,
                    "with --from page: write the folder and start nothing");
  command->add_flag("-y,--yes", arguments->yes,
                    "ask nothing, and use defaults for missing answers");
  command->add_flag("--force", arguments->force, "replace a file or swarm that exists");
  command->footer("On a terminal the command asks for missing answers. With --from page it reads "
                  "them from standard input, a line each.");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return make_new(*arguments); }; });
}

} // namespace shoal::tools
