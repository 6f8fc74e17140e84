// The parts of a training peer: its state machines, the handles of its helper actors, and its
// states. They are one object, so that a peer that ends drops all of them at once.
#pragma once

#include "actors/training/auditor.hpp"
#include "actors/training/progress_publisher.hpp"
#include "actors/training/reach_agent.hpp"
#include "actors/training/round_tracker.hpp"
#include "actors/training/shard_io.hpp"
#include "actors/training/state_cache.hpp"
#include "actors/training/training_peer.hpp"
#include "actors/trust/standing.hpp"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace shoal::actors {

struct training_peer::parts {
  parts(training_peer& of, std::shared_ptr<state_pool> with, caf::actor node);

  std::shared_ptr<state_pool> pool;
  caf::actor dht, device, group, fetcher;
  state_ptr state;
  held_samples held;
  shard_io<training_peer> effects;
  shard_client shard;
  progress_table others;
  std::optional<chain_follower> follower; // with proves_steps
  progress_publisher records;
  reach_agent reach;
  round_tracker rounds;
  state_catch_up catch_up;
  state_cache cache; // kept for downloads
  auditor audits;
  std::shared_ptr<recomputing> audit;                          // an audit that has begun
  bool auditing = false;                                       // the device computes a block of it
  standing duties;                                             // which others have missed
  std::deque<std::pair<duration, state_ptr>> judged;           // states of rounds that began then
  std::map<std::uint64_t, std::function<void()>> jobs;         // continuation of each device job
  std::function<void(std::optional<taken_step>)> step_fetched; // continuation of fetch_step()
};

} // namespace shoal::actors
