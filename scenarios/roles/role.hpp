// The role of a host in a swarm: training, only reducing for others, and so on. Each role is one
// file in this folder that makes a role_definition, and one line in scenarios/roles/all.cpp. The
// runner asks a role what to spawn and when its host is idle. (Hosts of the data shard are no group
// of `peers`: scenarios/runner/shard_hosts.hpp.)
#pragma once

#include "scenarios/schema/checking.hpp"
#include "scenarios/schema/registry.hpp"
#include "scenarios/schema/scenario.hpp"

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace shoal::actors {
class host;
class state_pool;
struct peer_config;
} // namespace shoal::actors

namespace shoal::scenarios {

/// A host that starts, as its role sees it.
struct role_site {
  caf::actor_system& system;
  actors::host& on;
  const scenario& what;
  const peer_group& group;
  const options_box& options;               ///< the role's options in the group of peers
  const actors::peer_config& config;        ///< for roles that are peers of the training method
  std::shared_ptr<actors::state_pool> pool; ///< states of the swarm, shared in this process
  caf::actor dht;                           ///< the DHT node of the host
};

struct role_definition : kind_definition {
  /// The host computes gradients: its device is used, and a swarm needs at least one such host.
  bool trains = false;
  /// The host has the whole model, whose loss it can measure.
  bool has_model = true;
  /// Actors on an idle host, its DHT node included. More than these mean that something is under
  /// way. 0: the training method says it.
  std::uint64_t idle_actors = 0;
  /// Reports what the descriptions of the options cannot say, for one group. Called when its `role`
  /// could be read. May be empty.
  std::function<void(const scenario&, const peer_group&, checking&)> check;
  /// Spawns the actor that is the role on its host, and whatever that one needs.
  std::function<caf::actor(const role_site&)> spawn;
  /// Asks that actor to end what is under way and start nothing new.
  std::function<void(const caf::actor&)> drain;
};

/// All roles; the first one is the default.
registry<role_definition>& roles();

} // namespace shoal::scenarios
