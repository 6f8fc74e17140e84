// The speed that a training method should reach on the hosts of a scenario, by their computing and
// their lines alone. `shoal plan` compares such predictions. They know no loss, no queues of the
// network, no shared links, no faults and no change over time; the simulator knows all of these.
// Churn counts as the share of its time in which a host is there.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shoal::scenarios {

/// A host's speed and lines. The speed is the mean over its sessions and gaps.
struct host_speed {
  std::string group;
  const role_definition* role = nullptr;
  double samples_per_second = 0; ///< the whole model's, forward and backward
  double step_seconds = 0;
  double up = 0, down = 0; ///< bit/s
  bool reachable = true;   ///< others can open a connection to it
};

/// All hosts but those that only a fault lets join, in the order of the file.
std::vector<host_speed> speeds_of(const scenario& what);
/// The mean round trip between two hosts, in seconds.
double round_trip_of(const scenario& what);

struct speed_prediction {
  double samples_per_second = 0;
  std::string limit;  ///< 'computing of home', 'uplinks of home', 'delay'
  std::string reason; ///< a sentence with the figures
};

/// The time in which a group averages a vector.
struct averaging_time {
  double lines = 0;    ///< seconds that the lines need
  double protocol = 0; ///< seconds to see that the batch is full, to meet, and to learn the result
  std::string slowest; ///< 'uplinks of home'
  double total() const noexcept { return lines + protocol; }
};

/// A group of these hosts averages `values` floats with the scenario's codecs. Hosts that do not
/// train only reduce. Source: DeDLOC's plan (kernels/averaging_plan.hpp).
/// Errors: the hosts cannot average; the round takes longer than `averaging.round_timeout`.
result<averaging_time> averaging_time_of(const scenario& what, std::span<const host_speed> hosts,
                                         std::uint64_t values);

/// One gradient of the whole swarm for each batch of `batch` samples. With `overlaps` the hosts
/// compute while they average. Errors: as averaging_time_of().
result<speed_prediction> speed_of_common_steps(const scenario& what, std::uint64_t batch,
                                               bool overlaps);
/// Steps of each peer's own, `samples` of the whole swarm between two rounds, and groups of at most
/// `group` hosts. A peer computes on during a round, for `staleness` further rounds at most.
/// Errors: as averaging_time_of().
result<speed_prediction> speed_of_local_steps(const scenario& what, double samples,
                                              std::uint64_t group, std::uint64_t staleness);

/// A way to train with a method: the keys of `training` and `averaging` that make it.
struct method_variant {
  std::string name; ///< '4 stages'; empty if the method has one variant
  std::vector<std::pair<std::string, std::string>> training, averaging;
};

/// The samples of the whole swarm between two rounds, in any method.
double samples_between_rounds(const scenario& what);

/// Three digits and a unit: '2.1 s', '340 ms'.
std::string rough_time(double seconds);

} // namespace shoal::scenarios
