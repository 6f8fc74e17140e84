#include "tools/wire_arguments.hpp"

#include "tools/arguments.hpp"
#include "tools/exit_codes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace shoal::tools {

void key_arguments::add_to(CLI::App& command) {
  command
      .add_option("--keys", folder, "folder with a key and certificate of this swarm (shoal keys)")
      ->type_name("DIR");
  command.add_flag("--insecure", insecure,
                   "use no keys: any host may take part, and read everything");
}

int key_arguments::load(std::optional<netem::wire::credentials>& into) const {
  if (folder.empty() == !insecure) {
    fmt::print(stderr, "error: {}\n",
               insecure ? "--keys and --insecure contradict each other"
                        : "give the folder of this host's keys with --keys DIR (shoal keys "
                          "--help), or let any host in with --insecure");
    return exit_usage;
  }
  if (insecure) return exit_ok;
  auto credentials = netem::wire::load_credentials(folder);
  if (!credentials) {
    return fail(credentials.error());
  }
  into = *std::move(credentials);
  return exit_ok;
}

} // namespace shoal::tools
