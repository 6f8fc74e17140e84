// How a node of the distributed hash table behaves. The defaults suit a swarm of volunteers; tests
// shorten some times.
#pragma once

#include "actors/conduct/conduct.hpp"
#include "actors/dht/record_store.hpp"
#include "actors/dht/signed_record.hpp"
#include "kernels/base/units.hpp"

#include <caf/actor.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace shoal::actors {

/// The result of an iterative look-up; for tests and benchmarks.
struct lookup_report {
  unsigned hops = 0;
  std::size_t asked = 0;
  bool for_key = false;
};

struct dht_config {
  std::vector<caf::actor> bootstraps; ///< addresses of nodes; some may be dead
  /// The nodes that are at these addresses now: asked when no known node is left. May be empty: the
  /// same as at first.
  std::function<std::vector<caf::actor>()> bootstraps_now;
  bool serves = true; ///< others can dial this host, as far as is known at the start
  std::size_t bucket_size = 20;
  std::size_t replicas = 5;
  std::size_t alpha = 3;
  duration slow_after = std::chrono::milliseconds(500); ///< from then on others are asked as well
  duration request_timeout = std::chrono::seconds(3);
  duration blacklist_time = std::chrono::seconds(1);
  /// The replicas of a key are known for so long after they last said so, and all of them are read
  /// that often.
  duration replicas_fresh = std::chrono::seconds(30);
  /// A key that was read so lately is not read again.
  duration cache_time = std::chrono::milliseconds(50);
  duration maintenance = std::chrono::seconds(10);
  duration refresh = std::chrono::minutes(5); ///< between two look-ups of random points
  duration republish = std::chrono::minutes(10);
  duration bootstrap_patience = std::chrono::seconds(10);
  record_limits limits;
  std::shared_ptr<signature_memo> memo; ///< shared by the nodes of one process; may be null
  std::function<void(const lookup_report&)> on_lookup; ///< may be empty
  std::shared_ptr<actors::conduct> conduct = honest_conduct();
};

} // namespace shoal::actors
