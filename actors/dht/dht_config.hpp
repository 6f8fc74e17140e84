// Options of a node of the distributed hash table. The defaults suit a swarm of volunteers; tests
// shorten some times.
#pragma once

#include "actors/conduct/conduct.hpp"
#include "actors/dht/record_store.hpp"
#include "actors/dht/signed_record.hpp"
#include "actors/trust/proof.hpp"
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
  /// Returns the nodes that are at these addresses now. The node calls it when it knows no live
  /// node. An empty function means that the addresses never change.
  std::function<std::vector<caf::actor>()> bootstraps_now;
  /// The host dials others, and will introduce the nodes that it finds. Until then, or until
  /// `bootstrap_timeout`, the node is not alone: its own host would read that nobody is there.
  bool awaits_introduction = false;
  bool serves = true; ///< others can dial this host, as far as its configuration says
  std::size_t bucket_size = 20;
  std::size_t replicas = 5;
  std::size_t alpha = 3;
  /// Disjoint paths of a look-up that joins or reads (iterative_lookup.hpp). Two paths ask a third
  /// more questions than one, so other look-ups have one.
  std::size_t paths = 2;
  duration slow_after =
      std::chrono::milliseconds(500); ///< after this time other nodes are asked as well
  duration request_timeout = std::chrono::seconds(3);
  duration blacklist_time = std::chrono::seconds(1);
  /// How long a confirmed set of replicas is current, and how often a reader reads all of them.
  duration replicas_fresh = std::chrono::seconds(30);
  /// A key is read at most this often.
  duration cache_time = std::chrono::milliseconds(50);
  duration maintenance = std::chrono::seconds(10);
  duration refresh = std::chrono::minutes(5); ///< between two look-ups of random points
  duration republish = std::chrono::minutes(10);
  duration bootstrap_timeout = std::chrono::seconds(10);
  record_limits limits;
  std::vector<proof> proofs;                   ///< the host has banned these members before
  std::shared_ptr<signature_cache> signatures; ///< shared by the nodes of one process; may be null
  std::function<void(const lookup_report&)> on_lookup; ///< may be empty
  std::shared_ptr<actors::conduct> conduct = honest_conduct();
};

} // namespace shoal::actors
