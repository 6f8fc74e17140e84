// The emulated Internet: hosts in regions, joined by links that take time. Everything that one
// host's actor sends to another's address passes here.
//
// Bulk (a message of more than `small_message_bytes`) is a flow: it shares its sender's uplink and
// its receiver's downlink max-min fairly with all other flows (netem/flow_network.hpp) and arrives
// one delay after its last byte has left. Messages of one pair of hosts follow each other on one
// connection. Small messages leave behind each other at the uplink's rate, do not wait for bulk, and
// arrive one delay later. Order is kept for each pair of hosts within each of the two classes.
//
// Wire size: CAF's serialized size + type name + 32 bytes of framing, + 40 bytes of TCP/IP header
// for each 1448 bytes; the same figure in all worlds.
//
// Failure (DESIGN section 1): nothing enters or leaves a dead host, bytes that had not left are
// lost, bytes under way arrive. An actor lives until it quits or its host dies; dropped handles do not
// end it. Observers of its actors learn of it one delay later (process) or
// after the detection time (machine), and after what it had under way to them. A restarted host is a new incarnation: old addresses stay dead.
//
// Left out: packet loss, slow start, queueing delay, routing changes (see the issue on the flow model).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <caf/actor.hpp>
#include <caf/node_id.hpp>
#include <caf/type_erased_tuple.hpp>

#include "kernels/base/rng.hpp"
#include "kernels/base/units.hpp"
#include "netem/coordinator.hpp"
#include "netem/flat_map.hpp"
#include "netem/flow_network.hpp"
#include "netem/port.hpp"

namespace shoal::netem {

using region_index = std::uint32_t;
using machine_index = std::uint32_t;

enum class kill_scope { process, machine };

/// An actor as history names it.
struct endpoint {
  host_index host = no_host;
  std::uint32_t ordinal = 0;
};

enum class event_kind : std::uint8_t { message, timer, down, host_started, host_killed };

/// One delivered event, in the order of history.
struct delivered_event {
  event_kind kind = event_kind::message;
  duration time{};
  duration sent{};                 ///< messages: when it was sent
  endpoint from, to;
  const char* type = "";
  std::uint64_t wire_bytes = 0;
};

/// How a message is accounted for: told by whoever knows the message types.
struct message_class {
  std::uint8_t traffic = 0;        ///< index into traffic_bytes()
  const char* name = "?";
};

struct fabric_options {
  std::uint64_t seed = 1;
  duration detection_time = std::chrono::seconds(5);
  std::uint64_t small_message_bytes = 4096;
  std::function<message_class(const caf::type_erased_tuple&)> classify;
  std::function<void(const delivered_event&)> on_event;   ///< may be empty
};

struct path_delay {
  duration delay{};
  duration jitter{};               ///< uniform in [-jitter, jitter]
};

/// Thread safety: all but construction and destruction may be called from any thread. No lock is held
/// while `classify` runs; `on_event` runs under the fabric's lock, so events come one at a time.
class fabric {
 public:
  fabric(caf::actor_system& system, fabric_options options);
  /// Kills every host without reporting it, lets the actors end, and stops the coordinator. Requires:
  /// the actor_system is alive; what actors and pending events refer to is, too.
  ~fabric();
  fabric(const fabric&) = delete;

  // -- building -------------------------------------------------------------

  region_index add_region(std::string name);
  void set_delay(region_index a, region_index b, path_delay delay);
  machine_index add_machine(std::string name, region_index region, data_rate up, data_rate down);

  /// Boots a machine: a new incarnation. Requires: no incarnation of it is alive.
  host_index start_host(machine_index machine);
  /// Kills a host. False if it is dead already.
  bool kill(host_index host, kill_scope scope);

  // -- what hosts look like -------------------------------------------------

  bool alive(host_index host) const;
  std::uint32_t incarnation(host_index host) const;
  machine_index machine_of(host_index host) const;
  /// How a dead host was killed.
  kill_scope died_by(host_index host) const;
  const std::string& name_of(host_index host) const;
  data_rate rate_up(host_index host) const;
  data_rate rate_down(host_index host) const;
  /// The living incarnation of a machine, or no_host.
  host_index host_on(machine_index machine) const;

  /// The address under which other hosts reach `actor`, which must live on a host.
  caf::actor address_of(const caf::actor& actor);

  // -- what happened --------------------------------------------------------

  static constexpr std::size_t traffic_classes = 8;
  std::uint64_t traffic_bytes(std::size_t traffic_class) const { return traffic_[traffic_class]; }
  /// Messages that one host's actor put into another's mailbox without an address.
  std::uint64_t bypassed() const noexcept { return bypassed_; }
  /// exit_msg, down_msg and other system messages refused from other hosts.
  std::uint64_t refused() const noexcept { return refused_; }
  /// Messages lost because their sender or receiver was dead.
  std::uint64_t lost() const noexcept { return lost_; }
  std::size_t active_flows() const;
  /// Flows that no living connection owns; 0 unless there is a bug.
  std::size_t orphaned_flows() const;
  std::size_t live_actors(host_index host) const;

  /// From now on nobody is told of events: the world is being taken down.
  void stop_reporting();

  /// Called by a mailbox of `receiver` for each arriving message.
  void note_arrival(host_index receiver) noexcept;

 private:
  friend class port;

  struct machine {
    std::string name;
    region_index region;
    data_rate up, down;
    link_id uplink, downlink;
    std::uint32_t incarnations = 0;
    host_index running = no_host;
  };
  struct host_state {
    // What every message needs comes first, in one cache line.
    machine_index machine = 0;
    region_index region = 0;
    bool alive = true;
    kill_scope died_by = kill_scope::process;
    duration died_at{};
    data_rate up;
    duration small_free{};           // when the uplink is done with the small messages so far
    std::uint32_t incarnation = 0;
    caf::node_id node;
    std::uint32_t next_ordinal = 0;
    std::map<std::uint32_t, caf::strong_actor_ptr> actors{};  // by ordinal
    std::set<std::uint64_t> bulk{};  // keys of the connections with bulk to send, in or out
    rng jitter;                      // of what it sends
  };
  struct actor_state {
    endpoint where;
    caf::strong_actor_ptr port;      // empty until the actor is published
  };
  struct in_transit {
    caf::strong_actor_ptr to;        // the port
    caf::mailbox_element_ptr element;
    endpoint from;
    std::uint64_t bytes = 0;
    duration sent{};
    message_class what;
    duration left{};                 // when its last byte was on its way
  };
  /// The bulk of one direction between two hosts; forgotten when it is idle.
  struct connection {
    host_index from, to;
    std::list<in_transit> waiting;   // front is being sent
    std::optional<flow_id> flow;
    duration last_arrival{};         // latest so far: keeps order under jitter
  };

  void send(port& to, caf::mailbox_element_ptr element);
  void observe(port& of, caf::attachable_ptr observer);
  std::size_t forget(port& of, const caf::attachable::token& what);

  void actor_born(host_index host, const caf::strong_actor_ptr& actor);
  void actor_ended(caf::actor_id id, caf::error reason);
  caf::strong_actor_ptr port_of(const caf::strong_actor_ptr& actor);
  connection& connect(host_index from, host_index to);
  void start_next(std::uint64_t key, connection& line, duration now);
  void arrive_later(host_index to, in_transit what, duration& last);
  void arrive(std::uint32_t in_flight);
  void hand_over(std::unique_lock<std::recursive_mutex>& guard, port& to, host_index on_behalf,
                 caf::mailbox_element_ptr element);
  void notify(port& of, port::observer observer, const caf::error& reason);
  void tell(port& of, std::uint64_t observer, const caf::error& reason);
  const path_delay& path(host_index from, host_index to) const;
  duration draw_delay(host_index from, host_index to);
  duration& last_small(host_index from, host_index to);
  void settle();                      // re-solves the flows and plans the next completion
  void flows_due();
  void finish_flows(duration now);
  duration flow_time();
  void flows_change();
  std::uint64_t wire_size(const caf::type_erased_tuple& content, const message_class& what);
  void report(const delivered_event& what);

  caf::actor_system& system_;
  coordinator& clock_;
  fabric_options options_;
  mutable std::recursive_mutex mutex_;
  std::vector<std::string> regions_;
  std::vector<std::vector<path_delay>> delays_;   // by region, twice
  std::deque<machine> machines_;                  // their names are handed out
  std::vector<host_state> hosts_;
  flat_map<actor_state> actors_;                  // by actor id
  // By the pair of hosts. Iterated only to drop idle ones.
  flat_map<duration> last_small_;                 // latest arrival of a small message so far
  std::unordered_map<std::uint64_t, connection> connections_;
  std::size_t connections_limit_ = 1024;
  std::vector<in_transit> in_flight_;             // has left, will arrive; named by index
  std::vector<std::uint32_t> in_flight_free_;
  flow_network flows_;
  std::atomic<bool> reporting_{false};
  bool flows_changed_ = false;
  event_handle next_flow_event_ = 0;
  duration next_flow_time_{};
  std::array<std::atomic<std::uint64_t>, traffic_classes> traffic_{};
  std::atomic<std::uint64_t> bypassed_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> lost_{0};
  fabric_link link_ = std::make_shared<std::atomic<fabric*>>(this);
};

}  // namespace shoal::netem
