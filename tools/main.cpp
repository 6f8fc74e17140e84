// shoal: decentralized training over the Internet, simulated and real.
#include <cstdio>

#include <CLI/CLI.hpp>

#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

int main(int argc, char** argv) {
  using namespace shoal::tools;
  CLI::App app{"shoal runs decentralized training over the Internet, simulated and real"};
  app.name("shoal");
  app.set_version_flag("--version", "shoal 0.1.0");
  app.require_subcommand(1);
  app.footer("'./shoal test' runs the test suite. Scenarios: docs/scenario.md");
  action chosen;
  add_run(app, chosen);
  add_check(app, chosen);
  add_verify_data(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_ok : exit_usage;
  }
  return chosen();
}
