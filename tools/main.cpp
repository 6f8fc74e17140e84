// shoal: decentralized training over the Internet, simulated and real.
#include <csignal>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "scenarios/compare/version.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

int main(int argc, char** argv) {
  using namespace shoal::tools;
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a write error, as on a full disk
  CLI::App app{"shoal runs decentralized training over the Internet, simulated and real"};
  app.name("shoal");
  app.set_version_flag("--version", fmt::format("shoal {}", shoal::scenarios::version()));
  app.require_subcommand(1);
  app.footer("'./shoal test' runs the test suite. Scenarios: docs/scenario.md");
  action chosen;
  add_run(app, chosen);
  add_new(app, chosen);
  add_check(app, chosen);
  add_replay(app, chosen);
  add_diff(app, chosen);
  add_generate(app, chosen);
  add_verify_data(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_ok : exit_usage;
  }
  return chosen();
}
