#include "tools/command_line.hpp"

#include <CLI/CLI.hpp>
#include <doctest/doctest.h>

using namespace shoal::tools;

namespace {

struct program {
  CLI::App app;
  std::string seed, set, file;
  program() {
    app.require_subcommand(1);
    auto* run = app.add_subcommand("run");
    run->add_option("scenario", file)->required();
    run->add_option("--seed", seed);
    run->add_option("--set", set);
    run->add_flag("--no-baseline");
    run->add_flag("-q,--quiet");
    app.add_subcommand("check");
  }
  std::string wrong(std::vector<std::string> arguments) {
    try {
      app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::ParseError&) {
      return unknown_option(app);
    }
    return "nothing is wrong";
  }
};

} // namespace

TEST_CASE("an unknown command is named, with the one that was meant") {
  program p;
  CHECK(unknown_command(p.app, {"rnu", "x"}) == "unknown command 'rnu'; did you mean 'run'?");
  CHECK(unknown_command(p.app, {"train"}) ==
        "unknown command 'train'; the commands are run, check");
  CHECK(unknown_command(p.app, {"README.md"}) ==
        "unknown command 'README.md'; did you mean 'run README.md'?");
  for (const auto& fine : {std::vector<std::string>{}, {"run"}, {"check", "x"}, {"--help"}})
    CHECK(unknown_command(p.app, fine).empty());
}

TEST_CASE("an unknown option is named, with the one that was meant") {
  CHECK(program().wrong({"run", "s.yaml", "--sed", "3"}) ==
        "unknown option --sed; did you mean --seed?");
  CHECK(program().wrong({"run", "--sed=3", "s.yaml"}) ==
        "unknown option --sed; did you mean --seed?");
  CHECK(program().wrong({"run", "--sed"}) == "unknown option --sed; did you mean --seed?");
  CHECK(program().wrong({"run", "s.yaml", "--colour"}) == "unknown option --colour");
  CHECK(program().wrong({"run", "s.yaml", "--no-base"}) ==
        "unknown option --no-base; did you mean --no-baseline?");
  CHECK(program().wrong({"run", "s.yaml", "--sett", "x"}) ==
        "unknown option --sett; did you mean --set?");
  CHECK(program().wrong({"run", "s.yaml", "-z"}) == "unknown option -z");
  CHECK(program().wrong({"--verison"}) == "unknown option --verison");
  CHECK(program().wrong({"run"}).empty()); // a file is missing: the parser says so
  CHECK(program().wrong({"run", "s.yaml", "-q", "--seed", "3"}) == "nothing is wrong");
}

TEST_CASE("'help' is the same as '--help'") {
  using words = std::vector<std::string>;
  CHECK(without_help_command({"help"}) == words{"--help"});
  CHECK(without_help_command({"help", "run"}) == words{"run", "--help"});
  CHECK(without_help_command({"run", "help"}) == words{"run", "help"});
}
