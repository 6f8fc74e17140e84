// A training method, as everything that handles scenarios sees it. Each method is one file in this
// folder that makes a method_definition, and one line in scenarios/methods/all.cpp. The checks, the
// runner and the observers read its traits, never its name.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/methods/speed.hpp"
#include "scenarios/schema/checking.hpp"
#include "scenarios/schema/registry.hpp"
#include "scenarios/schema/scenario.hpp"

#include <caf/fwd.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace shoal::actors {
struct peer_config;
class workload;
} // namespace shoal::actors

namespace shoal::scenarios {

class dice;          // scenarios/chaos/dice.hpp
struct drawn_method; // the same
struct role_site;    // scenarios/roles/role.hpp

/// The properties of a method with the options of one scenario.
struct method_traits {
  /// True: peers average their parameters. False: they average the step from one state, which all
  /// peers share, to the next.
  bool averages_parameters = false;
  /// True: a contribution weighs as much as its samples. False: all contributions weigh the same.
  bool weights_are_samples = true;
  /// A peer computes while its round runs, and follows the others when its job is over.
  bool computes_meanwhile = false;
  /// Samples in an epoch over the whole swarm; none: epochs follow from something else.
  std::optional<std::uint64_t> target_batch;
  /// Samples in one step of the single machine that the swarm is compared with.
  std::uint64_t baseline_batch = 0;
  /// All peers of an epoch meet in one group.
  bool whole_swarm = true;
  /// Peers meet in the rows of `averaging.grid`.
  bool uses_grid = false;
  /// Each step has a certificate that every peer knows, so commits can be proven.
  bool proves_steps = false;
  /// Hosts that only reduce have a place.
  bool takes_auxiliaries = false;
  /// Any member can compute a contribution again from the state and the samples, to the last bit.
  bool recomputable = false;
  /// Hosts of the role 'stage' hold a part of the model each. Rounds average the gradients of one
  /// stage, and trainers commit the samples of a batch.
  bool has_stages = false;
  /// Hosts of the role 'expert' hold experts of the model. Trainers make steps without waiting for
  /// each other, and commit the samples of each step. One of them puts the whole model together
  /// when its state is due.
  bool has_experts = false;
  /// Actors on an idle host that trains, its DHT node included.
  std::uint64_t idle_actors = 3; // the peer, its device and the node
  /// How many epochs two peers in sync may differ by; none: one.
  std::optional<std::uint64_t> max_epoch_difference;
};

struct method_definition : kind_definition {
  std::function<method_traits(const scenario&)> traits;
  /// The optimizer steps that one machine makes with the samples a swarm has used at `epoch`.
  /// Requires: epoch > 0.
  std::function<std::uint64_t(const scenario&, std::uint64_t epoch)> steps_of_machine;
  /// Reports what the descriptions of the options cannot say. Called when `training.method` could
  /// be read. May be empty.
  std::function<void(const scenario&, checking&)> check;
  /// Draws options for a random swarm of `shoal chaos`. May be empty: no swarm has this method.
  std::function<void(dice&, drawn_method&)> draw;
  /// How many random swarms have it, in proportion to the other methods; 0: only those that ask for
  /// it.
  unsigned drawn_share = 0;
  /// Fills in what peers of this method are told besides what all are. May be empty.
  std::function<void(const scenario&, actors::peer_config&)> configure;
  /// Makes the workload of this method's peers: `work`, or one around it whose step is the
  /// method's. Errors: options that make no sense for `work`. May be empty: `work`.
  std::function<result<std::shared_ptr<const actors::workload>>(
      const scenario&, std::shared_ptr<const actors::workload> work)>
      wrap;
  /// Spawns the training peer of a host.
  std::function<caf::actor(const role_site&)> spawn;
  /// The speed of a scenario of this method. May be empty: `shoal plan` leaves the method out.
  /// Errors: training cannot go on, with the reason.
  std::function<result<speed_prediction>(const scenario&)> speed;
  /// The variants that `shoal plan` compares, for the model and the hosts of a scenario of any
  /// method. May be empty: none.
  std::function<std::vector<method_variant>(const scenario&)> variants;
};

/// All methods; the first one is the default.
registry<method_definition>& methods();

/// The properties of the scenario's method.
method_traits traits_of(const scenario& what);

/// The number of hosts in all groups.
std::uint64_t count_of(const scenario& what);
/// `averaging.grid`, or the smallest square that holds all hosts.
kernels::grid grid_of(const scenario& what);

/// Reports optimizers whose state cannot be averaged.
void check_optimizer_average(const scenario& what, bool averages_optimizer, checking& report);
/// Reports a `micro_batch` that is larger than `target_batch`.
void check_micro_batch(const scenario& what, std::uint64_t target_batch, checking& report);

} // namespace shoal::scenarios
