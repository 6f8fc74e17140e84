// The options that all training methods share. Each method's own options are in a header of its own
// (overlap_options.hpp, moshpit_options.hpp).
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/conduct/conduct.hpp"
#include "actors/data/corpus.hpp"
#include "actors/data/shard_hosts.hpp"
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
  std::uint64_t epochs = 0;         ///< the peer stops computing after this epoch; 0: never
  std::uint32_t prefetch_samples = 64;
  duration min_refresh = std::chrono::milliseconds(200);
  duration max_refresh = std::chrono::seconds(5);
  duration record_lifetime = std::chrono::seconds(15);
  device_profile device;
  averaging_config averaging;
  averaging_codecs codecs; ///< the codecs of averaged values
  fetch_config fetch;
  reachability_config reachability;
  /// Says which hosts are data shards. Empty: each host with a record is one.
  shard_finder find_shard;
  corpus_root corpus;                 ///< the samples that the scenario fixes, if it does
  std::uint64_t max_uploads = 8;      ///< concurrent downloads that the peer serves
  std::uint64_t checkpoint_every = 0; ///< epochs; 0: never
  /// The actor calls this when a step of its own has led to such an epoch. Every peer that gets
  /// there calls it; the first one may write a checkpoint. All sample indices that led to the state
  /// are below `data_from`. It is no message, because it concerns only this host's disk.
  std::function<void(const state_ptr& state, std::uint64_t data_from)> on_checkpoint;
  std::shared_ptr<actors::conduct> conduct =
      honest_conduct(); ///< governs this host, and its rounds
};

} // namespace shoal::actors
