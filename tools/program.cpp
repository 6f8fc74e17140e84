#include "tools/program.hpp"

#include "scenarios/record/version.hpp"
#include "tools/build_identity.hpp"
#include "tools/command_line.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/first_words.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace shoal::tools {

namespace {

std::string version_text() {
  const std::string build = build_identity();
  return fmt::format("shoal {}{}", scenarios::version(), build.empty() ? "" : " (" + build + ")");
}

int wrong(const std::string& what, const std::string& help) {
  fmt::print(stderr, "{}\nRun 'shoal {}' for more information.\n", what, help);
  return exit_usage;
}

} // namespace

int run_program(int argc, char** argv) {
  std::signal(SIGXFSZ,
              SIG_IGN); // writing beyond a file size limit is then a write error, as on a full disk
  CLI::App app{"shoal runs decentralized training over the Internet, simulated and real"};
  app.name("shoal");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer("'shoal help COMMAND' has a command's options. './shoal test' runs the test suite. "
             "Scenarios: docs/scenario.md");
  action chosen;
  add_run(app, chosen);
  add_new(app, chosen);
  add_check(app, chosen);
  add_schema(app, chosen);
  add_sweep(app, chosen);
  add_replay(app, chosen);
  add_diff(app, chosen);
  add_node(app, chosen);
  add_probe(app, chosen);
  add_plan(app, chosen);
  add_promote(app, chosen);
  add_status(app, chosen);
  add_drain(app, chosen);
  add_compare(app, chosen);
  add_versus(app, chosen);
  add_report(app, chosen);
  add_serve(app, chosen);
  add_explain(app, chosen);
  add_trace(app, chosen);
  add_chaos(app, chosen);
  add_bench(app, chosen);
  add_evaluate(app, chosen);
  add_generate(app, chosen);
  add_chat(app, chosen);
  add_serve_model(app, chosen);
  add_memory(app, chosen);
  add_verify_data(app, chosen);
  add_keys(app, chosen);
  add_tokenizer(app, chosen);
  add_images(app, chosen);
  add_draw(app, chosen);
  add_model(app, chosen);
  add_export(app, chosen);
  add_completion(app, chosen);
  add_man(app, chosen);
  auto arguments = without_help_command({argv + 1, argv + argc});
  if (arguments.empty()) return std::fputs(first_words().c_str(), stderr), exit_usage;
  if (arguments.front() == "version") arguments.front() = "--version";
  if (const auto more = words_that_may_follow(app, arguments); !more.empty())
    return std::fputs(more.c_str(), stderr), exit_usage;
  if (auto what = unknown_command(app, arguments); !what.empty()) return wrong(what, "help");
  if (arguments.size() > 1 && !arguments[0].starts_with('-'))
    if (const auto* command = app.get_subcommand(arguments[0]);
        command->get_require_subcommand_min() > 0)
      if (auto what = unknown_command(*command, {arguments.begin() + 1, arguments.end()});
          !what.empty())
        return wrong(what, "help " + arguments[0]);
  try {
    app.parse(
        std::vector<std::string>(arguments.rbegin(),
                                 arguments.rend())); // the parser takes the arguments from the end
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    if (auto what = unknown_option(app); !what.empty()) return wrong(what, help_for(app));
    return wrong(parse_error_text(app, error), help_for(app));
  }
  return chosen();
}

} // namespace shoal::tools
