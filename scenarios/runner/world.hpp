// A world combines CAF, the clock, the emulated network and the compute threads. Its hosts
// implement actors::host, so that the same protocol actors run in all worlds.
#pragma once

#include "actors/host.hpp"
#include "netem/coordinator.hpp"
#include "netem/fabric.hpp"
#include "netem/wire/network.hpp"
#include "scenarios/runner/admitted_keys.hpp"
#include "scenarios/runner/ban_book.hpp"
#include "scenarios/runner/compute_pool.hpp"

#include <caf/actor_system.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shoal::actors {
class conduct;
}

namespace shoal::scenarios {

/// Counts steps that took longer in reality than in their profile. Above a few percent of excess,
/// the emulation is slower than the emulated hosts, and its times predict nothing.
struct distortion {
  std::uint64_t steps = 0, late_steps = 0;
  double profile_seconds = 0, late_seconds = 0;

  /// Extra compute time as a fraction of the profile's time.
  double excess() const noexcept {
    return profile_seconds > 0 ? late_seconds / profile_seconds : 0;
  }
};

/// The key of the one host of this process, with the certificate that the moderator issued for it.
struct member_keys {
  std::string name; ///< the host's name, which the certificate states
  actors::key256 key;
  std::function<actors::signature(const digest&)> sign;
  std::string certificate; ///< PEM
};

/// Options of a real network between hosts, on the wall clock.
struct real_network {
  /// The world fills in the clock, the detection time and the messages.
  netem::wire::wire_options options;
  bool shaped = false; ///< messages pass the emulated network first
  bool paced = true;   ///< a step lasts at least as long as its profile says
  /// Returns the options of a host, such as its listening address.
  std::function<netem::wire::host_options(const std::string& name)> host;
  /// True if the process runs one host of many. UTC is then the machine's clock, and each start
  /// takes its incarnation from this clock, so that incarnations ascend.
  bool alone = false;
  /// Empty: hosts have the stand-in keys of their names, which prove nothing.
  std::optional<member_keys> keys;
  /// The members that the one host of this process has banned before.
  std::vector<banned_member> bans;
};

struct world_options {
  netem::time_mode mode = netem::time_mode::virtual_time;
  unsigned actor_threads = 2; ///< wall clock only
  run_seed seed = 1;
  duration detection_time = std::chrono::seconds(5);
  unsigned compute_threads = 2;
  std::function<void()> prepare_compute_thread;
  std::function<void(const netem::delivered_event&)> on_event;
  netem::transfer_model model = netem::transfer_model::max_min;
  netem::tcp_options tcp;
  std::function<void(const netem::transfer_record&)> on_transfer; ///< may be empty
  double hole_punching = 0.7;
  std::optional<real_network> real; ///< empty: only the emulated network
};

class world {
public:
  explicit world(world_options options);
  ~world();
  world(const world&) = delete;

  /// Ends every actor in the ordinary way, and closes the real network. No callback of the world or
  /// of the network runs after that. The destructor calls it too, but callbacks that use the world
  /// by a pointer of its owner need that pointer until then.
  void stop();

  netem::coordinator& clock() noexcept { return clock_; }
  netem::fabric& net() noexcept { return *net_; }
  /// Returns the real network, or null.
  netem::wire::network* wire() noexcept { return wire_.get(); }
  compute_pool& pool() noexcept { return *pool_; }
  caf::actor_system& system() noexcept { return *system_; }
  std::uint64_t seed() const noexcept { return options_.seed.first; }
  /// The swarm in which this world's signatures count: actors::in_swarm().
  const std::string& swarm() const noexcept { return swarm_; }

  /// Returns the distortion of real time. All zeros in virtual time.
  distortion late() const;

  /// Returns why this world cannot go on, if so. Either a compute job threw, so that its actor
  /// would wait for ever, or the other hosts refused this host.
  std::optional<std::string> broken() const;
  /// Ends the world with the reason `why`. Thread safety: any thread.
  void breaks(std::string why);

  // On the wall clock, several threads call these functions at once.
  /// An actor on a host reports an observation.
  std::function<void(const actors::host&, const actors::observation&)> on_observation;
  /// A host has banned a member.
  std::function<void(const actors::host&, const banned_member&)> on_ban;
  /// A host reached a probe.
  std::function<void(netem::host_index, std::string_view point)> on_probe;
  /// Decides host::failpoint(). Empty: always false.
  std::function<bool(netem::host_index, std::string_view branch)> takes_failpoint;

  /// Sets the error of a machine's UTC clock. The clock is off by `offset` now and gains `drift`
  /// seconds per second (0.01: one percent). A restart keeps the error.
  /// Thread safety: any thread.
  void set_clock(netem::machine_index machine, duration offset, double drift);
  /// Returns the current error of the machine's clock.
  duration clock_offset(netem::machine_index machine) const;

  /// Boots `machine` and returns its new incarnation. If the host cannot listen on its address, the
  /// world is broken().
  actors::host& boot(netem::machine_index machine);
  /// The conduct sees each message of `on` to other hosts, and may change it.
  void alter_messages(const actors::host& on, std::shared_ptr<actors::conduct> by);
  /// The members that the machine of `on` has banned. A restart keeps them.
  std::vector<banned_member> bans_of(const actors::host& on) const;
  /// The network has certified that the host elsewhere has this name.
  void met(netem::host_index elsewhere, const std::string& name);
  netem::host_index index_of(const actors::host& of) const;
  actors::host& host_at(netem::host_index index);

  /// Spawns an actor of class `Actor` on host `on` and returns its address. On the wall clock, the
  /// result is null if the host was killed meanwhile.
  template <class Actor, class... Args>
  caf::actor spawn(actors::host& on, Args&&... args) {
    return spawn_by(on, [&](caf::actor_system& system) {
      return caf::actor_cast<caf::actor>(
          system.spawn<Actor>(std::ref(on), std::forward<Args>(args)...));
    });
  }
  /// Like spawn(), with a function that spawns the actor.
  template <class Spawn>
  caf::actor spawn_by(actors::host& on, Spawn spawn) {
    caf::actor out;
    clock_.as_host(index_of(on), [&] {
      // An actor that was killed at once has no address.
      if (auto local = spawn(*system_)) out = net_->address_of(local);
    });
    return out;
  }

  /// Returns the peer id of a host of this process: the machine's index and the incarnation. If
  /// other processes create peer ids, the hash of the host's name replaces the machine's index.
  actors::peer_id peer_id_of(netem::host_index host) const;
  std::int64_t utc_ns() const;

private:
  class emulated_host;

  world_options options_;
  std::string identity_of(const std::string& name) const;
  /// Binds a statement to this swarm.
  digest in_this_swarm(const digest& statement) const;
  std::shared_ptr<ban_book> book_of(netem::machine_index machine);
  /// True if a host of this process has banned the member.
  bool is_banned(const actors::member_id& who) const;
  /// The name of the member with that key; empty if this process does not know it.
  std::string name_behind(const actors::key256& key) const;
  /// In an emulated network, the machine neither sends to the owner of the key nor hears of it.
  void refuse(netem::machine_index machine, const actors::key256& key);
  bool is_signed_by(const actors::key256& key, const digest& statement,
                    const actors::signature& by) const;
  bool admits(const actors::key256& key, std::string_view certificate);
  /// The newest peer of this process with that key; 0 if there is none.
  actors::peer_id peer_behind(const actors::key256& key) const;
  bool has_keys() const noexcept { return options_.real && options_.real->keys; }

  std::optional<std::array<std::byte, 32>>
      secret_; // replaces the seed of random streams in a cluster
  std::unique_ptr<netem::system_config> config_;
  std::unique_ptr<caf::actor_system> system_;
  netem::coordinator& clock_;
  std::unique_ptr<netem::wire::network> wire_; // null in sim and emulate
  std::unique_ptr<netem::fabric> net_;
  std::unique_ptr<compute_pool> pool_;
  void job_threw(std::string_view job, std::string_view host, std::exception_ptr what);

  struct skew {
    duration offset{}; // error at time `since`
    double drift = 0;
    duration since{};
  };
  /// Runs `action` when the host has run for `time` since `start`, without pauses.
  void after_host_time(netem::host_index host, duration start, duration paused_before,
                       duration time, std::function<void()> action);

  mutable std::mutex clocks_mutex_; // guards clocks_
  std::map<netem::machine_index, skew> clocks_;
  const std::string swarm_;                       // see actors::in_swarm()
  const std::unique_ptr<admitted_keys> admitted_; // null without keys
  mutable std::mutex mutex_; // guards hosts_, altered_by_, bans_, names_, late_ and broken_
  std::map<netem::host_index, std::unique_ptr<emulated_host>> hosts_;
  std::map<netem::host_index, std::shared_ptr<actors::conduct>> altered_by_;
  std::map<netem::machine_index, std::shared_ptr<ban_book>> bans_;
  std::map<actors::member_id, std::string> names_; // names of hosts elsewhere
  distortion late_;
  std::optional<std::string> broken_;
};

} // namespace shoal::scenarios
