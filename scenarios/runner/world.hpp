// A world: CAF, the clock, the emulated network and the compute threads, put together. Hosts in it
// implement actors::host, so the same protocol actors run in sim and emulate.
#pragma once

#include "actors/host.hpp"
#include "netem/coordinator.hpp"
#include "netem/fabric.hpp"
#include "netem/wire/network.hpp"
#include "scenarios/runner/compute_pool.hpp"

#include <caf/actor_system.hpp>

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// Steps that took longer in reality than their profile says. Above a few percent the emulation is
/// slower than what it emulates, and its times predict nothing.
struct distortion {
  std::uint64_t steps = 0, late_steps = 0;
  double profile_seconds = 0, late_seconds = 0;

  /// Share of compute time that came on top.
  double excess() const noexcept {
    return profile_seconds > 0 ? late_seconds / profile_seconds : 0;
  }
};

/// Hosts that talk over a real network, on the wall clock.
struct real_network {
  netem::wire::wire_options
      options; ///< what the world knows it fills in: the clock, the detection time, the messages
  bool shaped = false; ///< what is sent passes the emulated network first
  bool paced = true;   ///< steps last as long as their profile says, at least
  /// Where a host listens.
  std::function<netem::wire::host_options(const std::string& name)> host;
  /// True: a host is one process of many. UTC is the machine's, and incarnations ascend with it.
  bool alone = false;
};

struct world_options {
  netem::time_mode mode = netem::time_mode::virtual_time;
  unsigned actor_threads = 2; ///< wall clock only
  std::uint64_t seed = 1;
  duration detection_time = std::chrono::seconds(5);
  unsigned compute_threads = 2;
  std::function<void()> prepare_compute_thread;
  std::function<void(const netem::delivered_event&)> on_event;
  netem::transfer_model model = netem::transfer_model::max_min;
  netem::tcp_options tcp;
  std::function<void(const netem::transfer_record&)> on_transfer; ///< may be empty
  double hole_punching = 0.7;
  std::optional<real_network> real; ///< none: the network is the emulated one alone
};

class world {
public:
  explicit world(world_options options);
  ~world();
  world(const world&) = delete;

  netem::coordinator& clock() noexcept { return clock_; }
  netem::fabric& net() noexcept { return *net_; }
  /// Null unless the network is real.
  netem::wire::network* wire() noexcept { return wire_.get(); }
  compute_pool& pool() noexcept { return *pool_; }
  caf::actor_system& system() noexcept { return *system_; }
  std::uint64_t seed() const noexcept { return options_.seed; }

  /// Real time only; zeros in virtual time.
  distortion late() const;

  /// Why this world cannot go on: a compute job threw (its actor would wait for ever), or the other
  /// hosts want none of us.
  std::optional<std::string> broken() const;
  /// Ends it for that reason. Thread safety: any thread.
  void breaks(std::string why);

  // Wall clock: these are called from several threads at once.
  /// What actors tell the observers: (host, what).
  std::function<void(const actors::host&, const actors::observation&)> on_observation;
  /// A host reached a probe.
  std::function<void(netem::host_index, std::string_view point)> on_probe;
  /// host::failpoint; empty: never.
  std::function<bool(netem::host_index, std::string_view branch)> takes_failpoint;

  /// The clock by which the machine tells the UTC, now and after a restart: off by `offset`, and
  /// from now on running `drift` faster than time (0.01: one percent). Thread safety: any thread.
  void set_clock(netem::machine_index machine, duration offset, double drift);
  /// What its clock is off by now.
  duration clock_offset(netem::machine_index machine) const;

  /// Boots `machine` and returns its new incarnation. Should it not be able to listen where it is
  /// to, the world is broken().
  actors::host& boot(netem::machine_index machine);
  netem::host_index index_of(const actors::host& of) const;
  actors::host& host_at(netem::host_index index);

  /// Spawns an actor of class `Actor` on `on`; returns its address, or nothing if it was killed
  /// meanwhile (wall clock only).
  template <class Actor, class... Args>
  caf::actor spawn(actors::host& on, Args&&... args) {
    return spawn_by(on, [&](caf::actor_system& system) {
      return caf::actor_cast<caf::actor>(
          system.spawn<Actor>(std::ref(on), std::forward<Args>(args)...));
    });
  }
  /// The same with a function that spawns the actor.
  template <class Spawn>
  caf::actor spawn_by(actors::host& on, Spawn spawn) {
    caf::actor out;
    clock_.as_host(index_of(on), [&] {
      // An actor that was killed at once has no address.
      if (auto local = spawn(*system_)) out = net_->address_of(local);
    });
    return out;
  }

  /// The peer id of a host of this process: its machine in the order of their making, then its
  /// incarnation; where others make their own, its name's hash instead of the machine.
  actors::peer_id peer_id_of(netem::host_index host) const;
  std::int64_t utc_ns() const;

private:
  class emulated_host;

  world_options options_;
  std::optional<std::uint64_t> secret_; // instead of the seed
  std::unique_ptr<netem::system_config> config_;
  std::unique_ptr<caf::actor_system> system_;
  netem::coordinator& clock_;
  std::unique_ptr<netem::wire::network> wire_; // none in sim and emulate
  std::unique_ptr<netem::fabric> net_;
  std::unique_ptr<compute_pool> pool_;
  void job_threw(std::string_view job, std::string_view host, std::exception_ptr what);

  struct skew {
    duration offset{}; // at `since`
    double drift = 0;
    duration since{};
  };
  /// Runs `action` once the host has had `time` since `start`, pauses not counted.
  void after_host_time(netem::host_index host, duration start, duration paused_before,
                       duration time, std::function<void()> action);

  mutable std::mutex clocks_mutex_; // guards clocks_
  std::map<netem::machine_index, skew> clocks_;
  mutable std::mutex mutex_; // guards hosts_, late_ and broken_
  std::map<netem::host_index, std::unique_ptr<emulated_host>> hosts_;
  distortion late_;
  std::optional<std::string> broken_;
};

} // namespace shoal::scenarios
