// The emulated Internet: hosts in regions, joined by links that take time. All messages from an
// actor of one host to the address of another pass through the fabric.
//
// - Bulk: a message of more than `small_message_bytes` is a transfer. It shares the links of its
//   route with other transfers by the chosen model (netem/transport.hpp). It arrives one delay
//   after its last byte has left. The route begins with the sender's uplink and the uplinks of its
//   sites (a home, a region) that do not hold the receiver. It ends with the receiver's links
//   downwards. A machine that says how fast it serializes (machine_options) is a link of its own,
//   which all bulk that it sends and receives shares. Messages of one pair of hosts follow each
//   other on one connection (netem/bulk_lines.hpp).
// - Small: other messages use a second connection. They leave one after the other at the uplink's
//   rate, take no rate from bulk, and arrive one delay later. Model `tcp` lets each transfer on the
//   uplink send one packet before them, as fair queueing does. At the other links they wait
//   behind bulk (transport::queueing_delay). Larger messages with a stream of
//   their own go with the small ones, as in HTTP/2. So the answers of a DHT node travel between the
//   chunks of a model. Order is kept for each pair of hosts within each of the two classes.
//   netem/path_quality.hpp models jitter, loss and duplication.
// - NAT: netem/nat_rules.hpp models hosts behind address translation, and relays. Messages that
//   wait for a connection keep their order. Messages that cannot reach the receiver are dropped and
//   counted. Relayed bulk shares the links of both ways, the relay's among them. Relayed small
//   messages pay the delays and losses of both ways and the relay's rate, but do not queue there.
//   All observers of a host hear of its death, connected or not.
// - Wire size: CAF's serialized size, the type name, 32 bytes of framing, and 40 bytes of TCP/IP
//   header for each 1448 bytes. The size is the same in all worlds.
// - Failure: no message enters or leaves a dead host. Bytes that had not left are lost, and bytes
//   in flight arrive. An actor lives until it quits or its host dies; dropped handles do not end
//   it. Observers learn of an end one delay later (process) or after the detection time (machine).
//   They learn it after the messages that the actor had in flight to them. A restarted host is a
//   new incarnation: old addresses stay dead.
// - Cuts (netem/cut.hpp): a cut connection gives no sign of life. Messages on it wait, as TCP sends
//   them again and again. If the cut heals within the detection time, they continue at the next
//   retry (model `tcp`; other models: at once). Otherwise the connection is given up: the waiting
//   messages are lost, and observers on the other side hear `unreachable` once, though the observed
//   actor lives. Later messages try again. A paused host keeps its connections and receives
//   messages, but none of its actors runs. After the detection time, observers on other hosts hear
//   `unreachable` of it, too. docs/failures.md has all rules.
// - Carrier (netem/carrier.hpp): with a carrier, messages go on over the real network after they
//   have passed the fabric, and the carrier reports deaths. Unless `shaped`, they go at once. Hosts
//   of other processes are known by the node id in their addresses. Each has a machine, so that the
//   path to it can be shaped. Their actors count as alive until the carrier reports their end.
//
// Left out: routing changes; the receive buffers of a paused host, which have no limit. In a cut of
// one direction, acknowledgements still get through.
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
#include <string_view>

namespace shoal::netem {

class cut;
struct fabric_state;
struct nat_counts;

/// Thread safety: all functions except construction and destruction. The fabric holds no lock while
/// a callback of the options runs, or while a message or an actor is destroyed.
class fabric {
public:
  fabric(caf::actor_system& system, fabric_options options);
  /// Kills every host without a report, lets the actors end, and stops the coordinator.
  /// Requires: the actor_system is alive, as is everything to which actors and pending events
  /// refer.
  ~fabric();
  fabric(const fabric&) = delete;

  // -- building -------------------------------------------------------------

  region_index add_region(std::string name);
  /// Sets the path between two regions, in both directions.
  void set_path(region_index a, region_index b, const path_quality& path);
  /// Adds a site: an uplink and a downlink that all machines and sites inside share. Sites may lie
  /// in other sites. `queue` is in front of both links; by default that of the options.
  site_index add_site(std::string name, data_rate up, data_rate down, site_index inside = no_site,
                      const std::optional<link_queue>& queue = std::nullopt);
  machine_index add_machine(const machine_options& what);
  machine_index add_machine(std::string name, region_index region, data_rate up, data_rate down) {
    return add_machine({.name = std::move(name), .region = region, .up = up, .down = down});
  }

  /// Adds a machine and its first host, which relays messages between hosts that cannot connect.
  /// Requires: no host behind address translation was started before.
  host_index add_relay(const machine_options& what, std::uint64_t budget_bytes);

  /// Boots a machine: starts a new incarnation, with the number `incarnation` if it is given.
  /// Requires: no incarnation of the machine is alive.
  host_index start_host(machine_index machine, std::optional<std::uint32_t> incarnation = {});
  /// Kills a host, even a paused one. Returns false if the host is dead.
  bool kill(host_index host, kill_scope scope);

  // -- for the carrier ------------------------------------------------------

  /// The node id of a host's addresses, which identifies the host in all processes. `identity`:
  /// see fabric_options.
  static caf::node_id node_of(std::string_view identity, std::uint32_t incarnation);
  caf::node_id node_of(host_index host) const;
  std::string identity_of(const std::string& name) const;
  /// The host with this node id, in this process or elsewhere. An unknown host is added as one
  /// elsewhere and alive.
  host_index host_at(const caf::node_id& node);
  /// True if the fabric knows the node, so that host_at() would not add a host.
  bool knows(const caf::node_id& node) const;
  /// Names a host elsewhere, and moves it to the machine of that name if there is one. Does nothing
  /// else if the host has a name.
  void set_name(host_index host, const std::string& name);
  /// The process of a host elsewhere has ended permanently: no message is sent to it any more.
  void remote_died(host_index host);
  /// True if an actor of a host of this process has not ended.
  bool lives(endpoint actor) const;
  /// The address of an actor by its number; empty if the fabric did not make `node`.
  caf::strong_actor_ptr address_at(const caf::node_id& node, caf::actor_id number);
  /// Delivers a message that came for a host of this process. The message's sender is an address of
  /// `from`, or empty.
  void deliver(endpoint from, endpoint to, caf::mailbox_element_ptr element, std::uint64_t bytes);
  /// Tells the observers on host `observer` that `of` is gone permanently, or unreachable now.
  /// Without `ordinal`, this concerns every actor of the host.
  void gone(host_index observer, host_index of, std::optional<std::uint32_t> ordinal,
            bool for_good);

  // -- changes at run time ----------------------------------------

  /// Sets the capacities from now on. The advertised rates (rate_up, rate_down) do not change.
  void set_rates(machine_index machine, data_rate up, data_rate down);
  void set_rates_of_site(site_index site, data_rate up, data_rate down);
  /// Sets the quality of the machine's line for outgoing and for incoming messages.
  void set_line(machine_index machine, const path_quality& out, const path_quality& in);
  /// Adds a cut. heal() removes it.
  std::uint64_t add_cut(cut what);
  void heal(std::uint64_t cut_number);
  /// One of the two machines refuses all connections with the other from now on. It is a cut
  /// between the two that never heals.
  void refuse(machine_index a, machine_index b);
  /// Pauses a host: no actor runs and no compute job continues until resume(). Returns false if the
  /// host is dead or paused.
  bool pause(host_index host);
  bool resume(host_index host);
  bool paused(host_index host) const;
  /// The total time for which a host has been paused.
  duration paused_time(host_index host) const;
  /// Runs `action` when the host is resumed, or now if it is alive and not paused. If the host dies
  /// first, the action never runs.
  void when_resumed(host_index host, std::function<void()> action);

  /// From now on, fabric_options::alter sees the messages of this host.
  void tamper(host_index host);

  // -- queries about hosts -------------------------------------------------

  bool alive(host_index host) const;
  std::uint32_t incarnation(host_index host) const;
  machine_index machine_of(host_index host) const;
  /// The scope with which a dead host was killed.
  kill_scope died_by(host_index host) const;
  std::string name_of(host_index host) const;
  data_rate rate_up(host_index host) const;
  data_rate rate_down(host_index host) const;
  /// The living incarnation of a machine, or no_host.
  host_index host_on(machine_index machine) const;

  /// The name of a link, as in "uplink of home-3" or "processor of home-3".
  std::string name_of(link_id link) const;
  /// The delay of one direction, without jitter.
  duration delay_between(host_index from, host_index to) const;

  /// The outcome of a direct dial, without a relay: whether the connection opens, and the earliest
  /// time at which both ends know.
  struct dial_outcome {
    bool opens = false;
    duration round_trip{};
  };
  dial_outcome dial(host_index from, host_index to) const;
  nat_class nat_of(host_index host) const;
  /// The address that `by` sees in datagrams of `of`; see nat_rules::address_of.
  std::uint64_t public_address(host_index of, host_index by) const;
  bool relay_left() const;
  /// Returns nothing if all machines are open.
  std::optional<nat_counts> nat_totals() const;
  /// The host of an actor, given by its address or by the actor itself; no_host if unknown.
  host_index host_of(const caf::actor& actor) const;

  /// The address under which other hosts reach `actor`. Empty if the actor has ended: on the wall
  /// clock, another thread may kill its host right after its birth.
  caf::actor address_of(const caf::actor& actor);

  // -- counters --------------------------------------------------------

  static constexpr std::size_t traffic_classes = 8;
  std::uint64_t traffic_bytes(std::size_t traffic_class) const;
  /// With a carrier: counts what was delivered to hosts of this process.
  std::uint64_t received_bytes(std::size_t traffic_class) const;
  /// Messages that an actor put into a mailbox of another host without an address.
  std::uint64_t bypassed() const noexcept;
  /// exit_msg, down_msg and other system messages from other hosts, which are refused.
  std::uint64_t refused() const noexcept;
  /// Messages lost because their sender or receiver was dead.
  std::uint64_t lost() const noexcept;
  /// Messages lost on connections that were given up after a cut.
  std::uint64_t given_up() const noexcept;
  std::size_t active_flows() const;
  /// Flows without a living connection; 0 unless there is a bug.
  std::size_t orphaned_flows() const;
  std::size_t live_actors(host_index host) const;

  /// Stops all reports of events, before the world is taken down.
  void stop_reporting();

  /// A mailbox of `receiver` calls it for each arriving message.
  void note_arrival(host_index receiver) noexcept;

private:
  std::unique_ptr<fabric_state> state_;
};

} // namespace shoal::netem
