// The options that all training methods share. Each method's own options are in a header of its own
// (overlap_options.hpp, moshpit_options.hpp).
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/conduct/conduct.hpp"
#include "actors/device/device.hpp"
#include "actors/reachability.hpp"
#include "actors/training/contribution.hpp"
#include "actors/training/state_fetcher.hpp"
#include "actors/training/workload.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace shoal::actors {

struct peer_config {
  std::uint64_t target_batch = 256; ///< samples of the whole swarm in a step or a round
  std::uint64_t micro_batch = 8;    ///< samples of one compute job
  std::uint64_t epochs = 0;         ///< the peer stops computing after so many; 0: never
  std::uint32_t prefetch_samples = 64;
  duration min_refresh = std::chrono::milliseconds(200);
  duration max_refresh = std::chrono::seconds(5);
  duration record_lifetime = std::chrono::seconds(15);
  device_profile device;
  averaging_config averaging;
  averaging_codecs codecs; ///< of what is averaged
  fetch_config fetch;
  reachability_config reachability;
  std::uint64_t max_uploads = 8;      ///< joiners that the peer sends a state to at the same time
  std::uint64_t checkpoint_every = 0; ///< epochs; 0: never
  /// Called in the actor when a step of its own has led to such an epoch, by every peer that gets
  /// there; the first one may write it down. `data_from`: all sample indices that led to the state
  /// are below it. Not a message: it concerns this host's disk alone.
  std::function<void(const state_ptr& state, std::uint64_t data_from)> on_checkpoint;
  std::shared_ptr<actors::conduct> conduct = honest_conduct(); ///< of this host; in its rounds, too
};

} // namespace shoal::actors
