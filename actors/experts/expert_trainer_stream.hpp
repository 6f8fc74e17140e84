// The trainer's side of the data shard's protocol.
#pragma once

#include "actors/data/data_shard.hpp"
#include "actors/dht/messages.hpp"
#include "actors/experts/expert_trainer.hpp"

#include <string>
#include <utility>

namespace shoal::actors {

/// Samples of the step under way count as computed, so that their leases are renewed.
struct expert_trainer::stream final : shard_client::io {
  explicit stream(expert_trainer& owner) : of(owner), shard(*this, owner.options_.shard, held) {}
  void send(const caf::actor& to, caf::message content) override {
    of.send(to, std::move(content));
  }
  const caf::actor& self() override { return of.address(); }
  void watch(const caf::actor& whom) override { of.monitor(whom); }
  void unwatch(const caf::actor& whom) override { of.demonitor(whom); }
  void look_up_shards() override {
    of.send(of.options_.dht, lookup{std::string{data_shard_key}, of.address(), shard_token});
  }
  void look_up_shards_in(duration wait) override { of.set_timer(wait, shard_timer); }
  bool failpoint(std::string_view branch) override { return of.here().failpoint(branch); }

  expert_trainer& of;
  held_samples held;
  shard_client shard;
};

} // namespace shoal::actors
