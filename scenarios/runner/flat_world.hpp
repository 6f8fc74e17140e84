// A world of machines with equal lines in one region, and a directory: the DHT node from which the
// nodes of all other hosts begin. Programs that run without the runner begin with such a world.
#pragma once

#include "actors/dht/signed_record.hpp"
#include "kernels/base/rng.hpp"
#include "scenarios/runner/world.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct flat_line {
  duration delay = std::chrono::milliseconds(25); ///< between two hosts, one way
  double rate = 100e6;                            ///< both ways, in bits per second
};

class flat_world {
public:
  flat_world(world_options options, flat_line line);
  ~flat_world();
  flat_world(const flat_world&) = delete;

  world& in() noexcept { return *in_; }
  netem::coordinator& clock() noexcept { return in_->clock(); }
  netem::fabric& net() noexcept { return in_->net(); }

  /// Boots the directory. Call it once, before start_node().
  void open();
  netem::machine_index add_machine(std::string name);
  /// A DHT node on the host.
  caf::actor start_node(actors::host& on);
  /// The bytes of all messages so far, in all classes of traffic.
  std::uint64_t bytes() const;

private:
  std::unique_ptr<world> in_;
  flat_line line_;
  netem::region_index region_ = 0;
  std::shared_ptr<actors::signature_cache> signatures_;
  caf::actor directory_;
};

/// Hosts that live and are away for times of exponential distributions.
struct life_options {
  std::uint64_t seed = 1;
  std::string stream;  ///< names the random streams, one for each machine
  duration lifetime{}; ///< the mean; 0: for ever
  duration downtime = std::chrono::seconds(30);
  netem::kill_scope scope = netem::kill_scope::machine;
};

class host_lives {
public:
  /// `start` has just been booted on machine `i`; `died` is called after a death.
  host_lives(world& in, life_options options, std::function<void(std::size_t, actors::host&)> start,
             std::function<void(std::size_t, netem::host_index)> died);

  /// Adds machine number size() and boots its first host.
  void add(netem::machine_index machine);
  const std::vector<netem::machine_index>& machines() const noexcept { return machines_; }
  /// Kills a host of add() that is alive. It comes back after a drawn time.
  void kill(netem::host_index host);

private:
  void boot(std::size_t i);
  duration drawn(std::size_t i, duration mean);

  world& in_;
  life_options options_;
  std::function<void(std::size_t, actors::host&)> start_;
  std::function<void(std::size_t, netem::host_index)> died_;
  std::mutex guard_; // on the wall clock, guards what follows
  std::vector<netem::machine_index> machines_;
  std::vector<rng> random_;
  std::map<netem::host_index, std::size_t> number_of_;
};

} // namespace shoal::scenarios
