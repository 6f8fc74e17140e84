// The parts of a training peer: its state machines, the handles of its helper actors, and its
// states. They are one object, so that a peer that ends drops all of them at once.
#pragma once

#include "actors/data/data_shard.hpp"
#include "actors/training/auditor.hpp"
#include "actors/training/progress_publisher.hpp"
#include "actors/training/reach_agent.hpp"
#include "actors/training/round_tracker.hpp"
#include "actors/training/shard_client.hpp"
#include "actors/training/state_cache.hpp"
#include "actors/training/training_peer.hpp"
#include "actors/trust/standing.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

namespace shoal::actors {

/// Carries out the requests of the shard client.
class training_peer::shard_effects final : public shard_client::io {
public:
  explicit shard_effects(training_peer& of) : of_(of) {}
  void send(const caf::actor& to, caf::message content) override {
    of_.send(to, std::move(content));
  }
  const caf::actor& self() override { return of_.address(); }
  void watch(const caf::actor& whom) override { of_.monitor(whom); }
  void unwatch(const caf::actor& whom) override { of_.demonitor(whom); }
  void look_up_shards() override;
  void look_up_shards_in(duration wait) override { of_.set_timer(wait, shard_timer); }
  bool failpoint(std::string_view branch) override { return of_.here().failpoint(branch); }

private:
  training_peer& of_;
};

struct training_peer::parts {
  parts(training_peer& of, std::shared_ptr<state_pool> with, caf::actor node);

  std::shared_ptr<state_pool> pool;
  caf::actor dht, device, group, fetcher;
  state_ptr state;
  held_samples held;
  shard_effects effects;
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
  std::map<std::uint64_t, std::function<void()>> jobs;         // continuation of each device job
  std::function<void(std::optional<taken_step>)> step_fetched; // continuation of fetch_step()
};

} // namespace shoal::actors
