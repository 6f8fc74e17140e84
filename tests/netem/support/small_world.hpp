// A world for tests of netem alone, with its own message types and a scripted actor class, but no
// protocol. The destructor checks invariants of every test: no message went around the network, and
// no actor or port is left.
#pragma once

#include "netem/coordinator.hpp"
#include "netem/cut.hpp"
#include "netem/fabric.hpp"
#include "netem/nat_rules.hpp"
#include "netem/port.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/meta/type_name.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::netem::testing {

struct note {
  std::uint32_t n = 0;
  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, note& x) {
    return f(caf::meta::type_name("note"), x.n);
  }
};

/// A question. The answer is note{n}.
struct ask {
  std::uint32_t n = 0;
  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, ask& x) {
    return f(caf::meta::type_name("ask"), x.n);
  }
};

struct bulk {
  std::uint32_t n = 0;
  std::string bytes;
  std::shared_ptr<const void> kept{}; // lives as long as the message; takes no bytes on the wire
  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, bulk& x) {
    return f(caf::meta::type_name("bulk"), x.n, x.bytes);
  }
};

struct intro {
  caf::actor who;
  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, intro& x) {
    return f(caf::meta::type_name("intro"), x.who);
  }
};

class small_world;

/// An actor that follows a script. It counts and drops unexpected messages and errors.
class puppet : public caf::event_based_actor {
public:
  using script = std::function<caf::behavior(puppet&)>;

  puppet(caf::actor_config& config, small_world& in, script what);
  ~puppet() override;

  caf::behavior make_behavior() override { return std::exchange(script_, {})(*this); }
  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit* unit) override;
  using caf::event_based_actor::enqueue;
  void on_exit() override { on_down = {}; }

  small_world& world() const noexcept { return in_; }
  host_index host() const noexcept { return host_; }
  /// Spawns another puppet on the host whose code is running.
  caf::actor child(script what);

  std::function<void(const caf::down_msg&)> on_down;

  static std::size_t live() noexcept;

private:
  small_world& in_;
  host_index host_;
  script script_;
};

/// The record of a received message.
struct received {
  duration at{};
  std::uint32_t n = 0;
  bool operator==(const received&) const = default;
};

class small_world {
public:
  explicit small_world(time_mode mode = time_mode::virtual_time, std::uint64_t seed = 1,
                       unsigned workers = 1, duration detection_time = std::chrono::seconds(5));
  ~small_world();

  /// Adds a machine to region 0, with equal rates up and down unless both are given, and starts its
  /// first incarnation.
  host_index host(double bits_per_second = 8e6, double bits_per_second_down = 0);
  /// Restarts the machine of a dead host.
  host_index restart(host_index old) { return net->start_host(net->machine_of(old)); }

  /// Spawns an actor and returns the actor itself. address() gives the handle for other hosts.
  caf::actor spawn(host_index on, puppet::script what);
  caf::actor address(const caf::actor& local) { return net->address_of(local); }
  caf::actor spawn_public(host_index on, puppet::script what) {
    return address(spawn(on, std::move(what)));
  }
  /// An actor that records notes, asks (which it answers) and bulk in `into`.
  caf::actor collector(host_index on, std::vector<received>& into);
  /// Runs `what` in an actor of `on`, in the next run().
  void does(host_index on, std::function<void(puppet&)> what);
  void does_at(duration when, host_index on, std::function<void(puppet&)> what);

  duration run() { return clock.run(duration::max()); }
  duration now() const { return clock.now(); }
  std::uint64_t wire_bytes_of(const char* type) const;

  std::uint64_t expected_bypassed = 0;
  std::vector<delivered_event> history;
  /// Receives events in place of `history`.
  std::function<void(const delivered_event&)> watch;
  std::size_t unexpected = 0;

  system_config config;
  std::optional<caf::actor_system> system;
  coordinator& clock;
  fabric* net = nullptr;
  region_index here = 0;

private:
  std::unique_ptr<fabric> owned_net_;
};

/// The time that `bytes` take at a rate.
inline duration at_rate(std::uint64_t bytes, double bits_per_second) {
  return from_seconds(static_cast<double>(bytes) * 8 / bits_per_second);
}

} // namespace shoal::netem::testing
