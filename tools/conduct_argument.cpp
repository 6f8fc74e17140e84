#include "tools/conduct_argument.hpp"

#include "actors/conduct/conducts.hpp"
#include "scenarios/schema/diagnostic.hpp"
#include "tools/arguments.hpp"
#include "tools/exit_codes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include <vector>

namespace shoal::tools {

void conduct_argument::add_to(CLI::App& command, const std::string& otherwise) {
  command
      .add_option("--conduct", kind,
                  "how this host behaves, to test a swarm of one's own: one of the kinds of "
                  "peers.GROUP.conduct (default: " +
                      otherwise + ")")
      ->type_name("KIND");
}

int conduct_argument::check() const {
  if (kind.empty() || actors::conducts().find(kind) != nullptr) return exit_ok;
  std::vector<std::string> names;
  for (const auto& each : actors::conducts().all()) names.push_back(each.name);
  return fail(fmt::format("--conduct: there is no conduct '{}'; {}", kind,
                          scenarios::did_you_mean(
                              kind, names, fmt::format("there are {}", fmt::join(names, ", ")))),
              exit_usage);
}

} // namespace shoal::tools
