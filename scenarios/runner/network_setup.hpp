// Builds the emulated network of a scenario.
#pragma once

#include "netem/fabric.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/schema/scenario.hpp"

#include <map>
#include <string>
#include <vector>

namespace shoal::scenarios {

netem::path_quality quality_of(const path_options& what);
netem::tcp_options tcp_of(const network_tcp_options& what);

struct network_machines {
  std::vector<netem::machine_index> shards; ///< index: as shard_hosts()
  std::vector<std::string> shard_regions;
  std::vector<netem::machine_index> peers; ///< index: as `hosts`
  std::vector<netem::site_index> homes;    ///< shared line of each host, or no_site
  std::map<std::string, netem::region_index> regions;
  std::map<std::string, netem::site_index> shared; ///< shared link of each region
};

/// Adds regions, links, sites and machines to an empty fabric.
network_machines build_network(const scenario& what, const std::vector<host_spec>& hosts,
                               netem::fabric& net);

} // namespace shoal::scenarios
