// Facts about a scenario that a page needs, from the text of run.yaml. facts_of() does not load the
// scenario. So the page works without the run's data, traces and checkpoints, and with another
// version of Shoal.
#pragma once

#include "kernels/base/units.hpp"
#include "scenarios/record/provenance.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

struct group_facts {
  std::string name, region, device, role, nat;
  std::uint64_t count = 0;
  double samples_per_second = 0;
  data_rate up{}, down{};
};

struct run_facts {
  std::string name, description, world;
  std::uint64_t seed = 0;
  duration stop_time{};
  std::vector<std::string> regions;
  /// One-way delays between regions, by their indices; the diagonal is the delay inside a region.
  std::vector<std::vector<duration>> delays;
  std::vector<group_facts> groups;
  std::string shard_region;
  data_rate shard_up, shard_down;
  std::uint64_t shards = 1;
  std::string workload, method, compression, means_compression;
  std::uint64_t parameters = 0; ///< 0: the workload's default
  std::uint64_t epochs = 0, target_batch = 0;
  std::vector<std::string> shown; ///< captions whose pictures a model draws after checkpoints
  std::string metrics_interval;
  bool records_events = true, records_transfers = true;
  std::uint64_t most_transfers = 0; ///< 0: unknown
  provenance made_by;
};

/// Parses run.yaml. Missing or unreadable keys keep their defaults.
run_facts facts_of(std::string_view run_yaml);

} // namespace shoal::scenarios
