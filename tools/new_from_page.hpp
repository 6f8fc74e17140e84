// shoal new NAME --from page: a folder with a swarm that one person begins and friends join.
#pragma once

#include <optional>
#include <string>

namespace shoal::tools {

struct page_wishes {
  std::optional<std::string> workload, text, address, friends, steps, page;
  bool yes = false;   ///< asks nothing
  bool start = true;  ///< starts the swarm, or else only writes the folder
  bool force = false; ///< replaces an earlier folder of this command
};

/// Asks on stderr for answers that are not given, reads them from standard input, writes the folder
/// `name`, and starts the swarm in it. Returns the exit status, unless the swarm's script takes the
/// place of this process.
int new_from_page(const std::string& name, const page_wishes& wishes);

} // namespace shoal::tools
