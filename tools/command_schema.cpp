// shoal schema: the JSON Schema of scenario files, for editors.
#include "scenarios/schema/json_schema.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace shoal::tools {

void add_schema(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand(
      "schema", "print the JSON Schema of scenarios, with which editors complete and check");
  command->callback([&chosen] {
    chosen = [] {
      std::fputs(scenarios::json_schema().c_str(), stdout);
      return exit_ok;
    };
  });
}

} // namespace shoal::tools
