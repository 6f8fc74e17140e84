// The emulated Internet: hosts in regions, joined by links that take time.
// Everything that one host's actor sends to another's address passes here.
//
// Bulk: a message of more than `small_message_bytes` is a transfer. It shares the links on its way
// with all others as the
//   chosen model says (netem/transport.hpp), and arrives one delay after its last byte has left.
//   The links are the sender's uplink, the shared links of the sites it is in (a home, a region)
//   unless the receiver is in them too, then those of the receiver downwards. Messages of one pair
//   of hosts follow each other on one connection (netem/bulk_lines.hpp).
// Small: other messages go on another connection. They leave behind each other at the uplink's
// rate, take nothing from the
//   rates of bulk, and arrive one delay later. Model `tcp` lets each transfer on the uplink send
//   one packet before them, as fair queueing does. Larger messages with a stream of their own go
//   with the small ones, as in HTTP/2: the answers of a DHT node come in frames between those of a
//   model's chunks. Order is kept for each pair of hosts within each of the two classes.
//   netem/path_quality.hpp says what else the way does to messages.
//
// NAT: netem/reachability.hpp has hosts behind address translation, and relays. Messages that wait
// for a connection follow in their
//   order; messages that reach nobody are dropped and counted. Relayed bulk shares the links of
//   both ways, the relay's among them. Relayed small messages pay the delays and losses of both
//   ways and the relay's rate, but do not queue there. All observers of a host hear of its death,
//   connected or not.
//
// Wire size: CAF's serialized size + type name + 32 bytes of framing, + 40 bytes of TCP/IP header
// for each 1448 bytes.
//   The figure is the same in all worlds.
//
// Failure: nothing enters or leaves a dead host. Bytes that had not left are lost, bytes under way
// arrive. An actor lives until it
//   quits or its host dies; dropped handles do not end it. Observers learn of an end one delay
//   later (process) or after the detection time (machine), and after the messages that the actor
//   had under way to them. A restarted host is a new incarnation: old addresses stay dead.
//
// Cuts (netem/cut.hpp): a cut connection gives no sign of life. Messages sent into it wait, as TCP
// sends them again and again. If the
//   cut heals within the detection time, they go on at the next of these retries (model `tcp`;
//   others: at once). If not, the connection is given up: the waiting messages are lost, and
//   observers on the other side hear `unreachable`, once, though the observed actor lives. Later
//   messages try again. A paused host keeps its connections and takes what arrives, but nobody
//   there runs; after the detection time others hear the same of it. docs/failures.md has it all.
//
// Carrier (netem/carrier.hpp): with one, messages go on over the real network after they have
// passed here, and the carrier tells of
//   deaths. Unless `shaped`, they go at once. Hosts of other processes are known by the node id of
//   their addresses. They have a machine, so that the way to them can be shaped, and their actors
//   live as long as nobody says otherwise.
//
// Left out: queueing delay of small messages at shared links and downlinks, routing changes.
// Acknowledgements of a direction that is
//   cut one way get through. A paused host's receive buffers have no end.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/events.hpp"
#include "netem/fabric_options.hpp"
#include "netem/ids.hpp"
#include "netem/machine_options.hpp"

#include <caf/fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace shoal::netem {

class cut;
struct fabric_state;
struct reachability_counts;

/// Thread safety: all but construction and destruction may be called from any thread. No lock is
/// held while a callback of the options runs, nor while a message or an actor is destroyed.
class fabric {
public:
  fabric(caf::actor_system& system, fabric_options options);
  /// Kills every host without reporting it, lets the actors end, and stops the coordinator.
  /// Requires: the actor_system is alive; what actors and pending events refer to is, too.
  ~fabric();
  fabric(const fabric&) = delete;

  // -- building -------------------------------------------------------------

  region_index add_region(std::string name);
  /// Between two regions, both ways.
  void set_path(region_index a, region_index b, const path_quality& path);
  /// Links that all machines and sites inside share on their way out and in. Sites may lie in
  /// sites.
  site_index add_site(std::string name, data_rate up, data_rate down, site_index inside = no_site);
  machine_index add_machine(const machine_options& what);
  machine_index add_machine(std::string name, region_index region, data_rate up, data_rate down) {
    return add_machine({.name = std::move(name), .region = region, .up = up, .down = down});
  }

  /// A machine and its first host that pass on what others cannot send each other. Requires: no
  /// host was started that is not open.
  host_index add_relay(const machine_options& what, std::uint64_t budget_bytes);

  /// Boots a machine: a new incarnation, which has the number `incarnation` if that is given.
  /// Requires: no incarnation of it is alive.
  host_index start_host(machine_index machine, std::optional<std::uint32_t> incarnation = {});
  /// Kills a host, a paused one too. False if it is dead already.
  bool kill(host_index host, kill_scope scope);

  // -- for the carrier ------------------------------------------------------

  /// The id of a host's addresses, which identifies the host anywhere.
  static caf::node_id node_of(const std::string& name, std::uint32_t incarnation);
  caf::node_id node_of(host_index host) const;
  /// The host with these addresses, here or elsewhere; an unknown one is taken to be elsewhere and
  /// alive.
  host_index host_at(const caf::node_id& node);
  /// Whether the node has been heard of: host_at would make no new host.
  bool knows(const caf::node_id& node) const;
  /// Names a host elsewhere. Nothing happens if it has a name.
  void set_name(host_index host, const std::string& name);
  /// The process of a host elsewhere is over for good: nothing is sent to it any more.
  void remote_died(host_index host);
  /// Whether an actor of a host of this process has not ended.
  bool lives(endpoint actor) const;
  /// The address of an actor by its number; empty if `node` is not a node id of ours.
  caf::strong_actor_ptr address_at(const caf::node_id& node, caf::actor_id number);
  /// Hands over a message that came for a host of this process. Its sender is an address of `from`,
  /// or empty.
  void deliver(endpoint from, endpoint to, caf::mailbox_element_ptr element, std::uint64_t bytes);
  /// Tells observers on `observer` of `of`, or of every actor of its host: it is gone for good, or
  /// cannot be reached now.
  void gone(host_index observer, host_index of, std::optional<std::uint32_t> ordinal,
            bool for_good);

  // -- what changes while it is used ----------------------------------------

  /// Capacities from now on; what the owner says of the line (rate_up, rate_down) stays.
  void set_rates(machine_index machine, data_rate up, data_rate down);
  void set_rates_of_site(site_index site, data_rate up, data_rate down);
  /// What the machine's line does to what it sends and to what it is sent.
  void set_line(machine_index machine, const path_quality& out, const path_quality& in);
  /// Adds a cut; heal() takes it away again.
  std::uint64_t add_cut(cut what);
  void heal(std::uint64_t cut_number);
  /// Nobody on the host runs and no compute job goes on until it is resumed. False if it is dead or
  /// paused already.
  bool pause(host_index host);
  bool resume(host_index host);
  bool paused(host_index host) const;
  /// How long a host has been paused in its life so far.
  duration paused_time(host_index host) const;
  /// Runs `action` when the host is resumed; never if it dies before. If it is alive and not
  /// paused, runs it now.
  void when_resumed(host_index host, std::function<void()> action);

  // -- what hosts look like -------------------------------------------------

  bool alive(host_index host) const;
  std::uint32_t incarnation(host_index host) const;
  machine_index machine_of(host_index host) const;
  /// How a dead host was killed.
  kill_scope died_by(host_index host) const;
  std::string name_of(host_index host) const;
  data_rate rate_up(host_index host) const;
  data_rate rate_down(host_index host) const;
  /// The living incarnation of a machine, or no_host.
  host_index host_on(machine_index machine) const;

  /// "uplink of home-3".
  std::string name_of(link_id link) const;
  /// One way, without jitter.
  duration delay_between(host_index from, host_index to) const;

  /// Whether a new connection from one to the other, by no relay and on none there is, would open;
  /// and when both know, at the earliest.
  struct dial_outcome {
    bool opens = false;
    duration round_trip{};
  };
  dial_outcome dial(host_index from, host_index to) const;
  nat_class nat_of(host_index host) const;
  /// As reachability::address_of: what `by` sees datagrams of `of` come from.
  std::uint64_t public_address(host_index of, host_index by) const;
  bool relay_left() const;
  /// Nothing if all machines are open.
  std::optional<reachability_counts> reachability_totals() const;
  /// The host of an actor, by its address or itself; no_host if it is unknown.
  host_index host_of(const caf::actor& actor) const;

  /// The address under which other hosts reach `actor`; nothing if it has ended (wall clock:
  /// somebody else may kill its host right after it was spawned).
  caf::actor address_of(const caf::actor& actor);

  // -- what happened --------------------------------------------------------

  static constexpr std::size_t traffic_classes = 8;
  std::uint64_t traffic_bytes(std::size_t traffic_class) const;
  /// With a carrier: of what was handed over to hosts of this process.
  std::uint64_t received_bytes(std::size_t traffic_class) const;
  /// Messages that one host's actor put into another's mailbox without an address.
  std::uint64_t bypassed() const noexcept;
  /// exit_msg, down_msg and other system messages refused from other hosts.
  std::uint64_t refused() const noexcept;
  /// Messages lost because their sender or receiver was dead.
  std::uint64_t lost() const noexcept;
  /// Messages lost on connections that a cut made them give up.
  std::uint64_t given_up() const noexcept;
  std::size_t active_flows() const;
  /// Flows that no living connection owns; 0 unless there is a bug.
  std::size_t orphaned_flows() const;
  std::size_t live_actors(host_index host) const;

  /// From now on nobody is told of events: the world is being taken down.
  void stop_reporting();

  /// Called by a mailbox of `receiver` for each arriving message.
  void note_arrival(host_index receiver) noexcept;

private:
  std::unique_ptr<fabric_state> state_;
};

} // namespace shoal::netem
