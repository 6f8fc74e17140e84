// The hosts of an emulated network, and the addresses of their actors. A restarted machine is a new
// host with the next incarnation number, so old addresses never name new actors.
//
// Ordinals number the actors of a host in the order of their births. An address consists of the
// host's node id and an ordinal. With a carrier, hosts of other processes are known by node id as
// well.
// Thread safety: none.
#pragma once

#include "kernels/base/rng.hpp"
#include "kernels/base/units.hpp"
#include "netem/flat_map.hpp"
#include "netem/port.hpp"
#include "netem/topology.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/node_id.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::netem {

struct host_state {
  // The members that every message needs come first, in one cache line.
  topology::location where;
  bool alive = true;
  kill_scope died_by = kill_scope::process;
  duration died_at{};
  data_rate up;
  duration small_free{}; // when the uplink has sent the small messages so far
  link_id uplink{};
  std::uint32_t incarnation = 0;
  std::uint32_t next_ordinal = 0;
  bool elsewhere = false; // in another process
  bool tampers = false;   // fabric_options::alter sees its messages
  caf::node_id node;
  std::map<std::uint32_t, caf::strong_actor_ptr> actors{}; // by ordinal
  rng jitter;                                              // for the messages that it sends
  /// With a carrier: the ports of actors that are elsewhere or observed, by ordinal.
  std::map<std::uint32_t, caf::strong_actor_ptr> ports{};
  std::size_t collect_at = 64; // the number of ports at which unused ones are dropped
};

struct published_actor {
  endpoint where;
  caf::strong_actor_ptr port; // empty until the actor is published
};

class host_table {
public:
  /// The table makes ports in `system`. Ports call the fabric through `link`.
  host_table(caf::actor_system* system, fabric_link link)
      : system_(system), link_(std::move(link)) {}

  // -- node ids -------------------------------------------------------------

  /// The first 160 bits of BLAKE2b-256 of the identity, and the incarnation.
  static caf::node_id node_of(std::string_view identity, std::uint32_t incarnation);
  /// True if CAF accepts the id as a node, and the fabric made it.
  static bool is_ours(const caf::node_id& node);
  /// The incarnation in a node id; 0 if the fabric did not make the id.
  static std::uint32_t incarnation_in(const caf::node_id& node);
  /// The node id of the same machine's incarnation 0.
  static caf::node_id first_of(const caf::node_id& node);

  // -- hosts ----------------------------------------------------------------

  std::size_t size() const noexcept { return hosts_.size(); }
  host_state& operator[](host_index host) { return hosts_[host]; }
  const host_state& operator[](host_index host) const { return hosts_[host]; }

  host_index add(host_state made);
  /// The living incarnation of a machine, or no_host.
  host_index running(machine_index machine) const {
    return machine < machines_.size() ? machines_[machine].running : no_host;
  }
  /// The number of the incarnation that starts now: `given`, or the last one plus one.
  std::uint32_t next_incarnation(machine_index machine, std::optional<std::uint32_t> given);
  void set_running(machine_index machine, host_index host) { of(machine).running = host; }

  /// With a carrier: the host with this node id, or no_host.
  host_index find(const caf::node_id& node) const;
  void name(host_index host) { by_node_[hosts_[host].node] = host; }
  /// With a carrier: the machine whose incarnation 0 has this node id.
  std::optional<machine_index> machine_of(const caf::node_id& first) const;
  void name_machine(caf::node_id first, machine_index machine) {
    machines_by_node_[std::move(first)] = machine;
  }

  // -- actors and their addresses -------------------------------------------

  /// Gives a new actor its ordinal.
  void born(host_index host, const caf::strong_actor_ptr& actor);
  /// The entry of an actor of this process; null if there is none.
  const published_actor* find(caf::actor_id actor) const { return actors_.find(actor); }
  struct ended_actor {
    published_actor what;
    caf::strong_actor_ptr actor;
  };
  /// Removes an actor that has ended.
  std::optional<ended_actor> ended(caf::actor_id actor);
  /// Calls `what(published_actor)` for each actor. The order must not influence results.
  template <class Function>
  void for_each_actor(Function what) const {
    actors_.for_each([&](std::uint64_t, const published_actor& actor) { what(actor); });
  }

  /// The port of an actor of this process, made at the first call; empty if the actor has ended.
  caf::strong_actor_ptr port_of(const caf::strong_actor_ptr& actor);
  /// With a carrier: the port of any actor of a host. Moves unused ports to `dropped`.
  caf::strong_actor_ptr port_at(host_index host, std::uint32_t ordinal,
                                std::vector<caf::strong_actor_ptr>& dropped);

private:
  struct machine_state {
    std::uint32_t incarnations = 0;
    host_index running = no_host;
  };

  machine_state& of(machine_index machine);
  caf::strong_actor_ptr make_port(const caf::strong_actor_ptr& actor, host_index host,
                                  std::uint32_t ordinal);
  static void collect_unused_ports(host_state& host, std::vector<caf::strong_actor_ptr>& dropped);

  caf::actor_system* system_;
  fabric_link link_;
  std::vector<host_state> hosts_;
  std::vector<machine_state> machines_;
  flat_map<published_actor> actors_; // by actor id
  std::map<caf::node_id, host_index> by_node_;
  std::map<caf::node_id, machine_index> machines_by_node_;
};

} // namespace shoal::netem
