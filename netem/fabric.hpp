// The emulated Internet: hosts in regions, joined by links that take time. Everything that one
// host's actor sends to another's address passes here.
//
// Bulk (a message of more than `small_message_bytes`) is a transfer: it shares the links on its way with all
// others as the chosen model says (netem/transport.hpp) and arrives one delay after its last byte has left.
// Links: the sender's uplink, the shared links of the sites it is in (a home, a region) as far as the receiver
// is not in them too, then those of the receiver downwards. Messages of one pair of hosts follow each other on
// one connection. Small messages go on another: they leave behind each other at the uplink's rate (with model
// `tcp` also behind one packet of each transfer that is using the uplink, as fair queueing has it), take nothing
// from the rates of bulk, and arrive one delay later. So do larger messages with a stream of their own, as HTTP/2 has it: what a DHT
// node answers comes in frames between those of a model's chunks, not behind them. Order is kept for each pair of hosts within each of the two
// classes. What the way does to them besides: netem/path_quality.hpp.
//
// Hosts behind address translation and relays: netem/reachability.hpp. What waits for a connection follows in its order when
// there is one; what reaches nobody is dropped and counted. Relayed bulk shares the links of both ways, the relay's among them;
// relayed small messages pay the delays and losses of both and the relay's rate, but do not queue there.
// The death of a host is told to all its observers, connected or not.
//
// Wire size: CAF's serialized size + type name + 32 bytes of framing, + 40 bytes of TCP/IP header
// for each 1448 bytes; the same figure in all worlds.
//
// Failure (DESIGN section 1): nothing enters or leaves a dead host, bytes that had not left are
// lost, bytes under way arrive. An actor lives until it quits or its host dies; dropped handles do not
// end it. Observers of its actors learn of it one delay later (process) or
// after the detection time (machine), and after what it had under way to them. A restarted host is a new incarnation: old addresses stay dead.
//
// Cuts (netem/cut.hpp) are connections without a sign of life. What is sent into one waits, as TCP sends it again and
// again; heals the cut within the detection time, it goes on at the next of these retries (model `tcp`; others: at
// once), if not, the connection is given up: what waited is lost, and observers on the other side are told
// `unreachable`, once, though the observed lives. What is sent later tries again. A paused host keeps its connections
// and takes what arrives, but nobody there runs; after the detection time others are told the same of it.
// docs/failures.md has it all.
//
// With a carrier (netem/carrier.hpp) what has passed here goes on over the real network, and deaths are told when that says so. Unless
// `shaped`, it goes at once. Hosts of other processes are known by the node id of their addresses; they have an entry of a
// machine, so that the way to them can be shaped, and their actors live as long as nobody says otherwise.
//
// Left out: queueing delay of small messages at shared links and downlinks, routing changes; acknowledgements of a
// direction that is cut one way get through; a paused host's receive buffers have no end.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/node_id.hpp>
#include <caf/type_erased_tuple.hpp>

#include "kernels/base/rng.hpp"
#include "kernels/base/units.hpp"
#include "netem/carrier.hpp"
#include "netem/coordinator.hpp"
#include "netem/cut.hpp"
#include "netem/flat_map.hpp"
#include "netem/path_quality.hpp"
#include "netem/port.hpp"
#include "netem/reachability.hpp"
#include "netem/transport.hpp"

namespace shoal::netem {

using region_index = std::uint32_t;
using machine_index = std::uint32_t;
using site_index = std::uint32_t;
inline constexpr site_index no_site = 0xffffffff;

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
  /// How many bytes CAF's serializer would write, if that is known more cheaply than by asking it.
  std::uint64_t (*bytes)(const caf::type_erased_tuple&) = nullptr;
  bool own_stream = false;         ///< up to `own_stream_bytes` it does not wait behind bulk, but goes with the small messages
};

/// From `at` on a transfer had this rate.
struct transfer_step {
  duration at{};
  double bits_per_second = 0;
  rate_limit why = rate_limit::link;
  link_id link{};                  ///< of rate_limit::link
  std::uint32_t sharers = 0;       ///< transfers on that link, this one among them
};

/// One transfer of bulk, told when it ends.
struct transfer_record {
  std::uint64_t number = 0;        ///< in the order of their beginnings, from 1
  endpoint from, to;
  const char* type = "";
  std::uint64_t bytes = 0;
  duration sent{};                 ///< when the actor sent it
  duration begun{};                ///< when those before it on its connection had left
  duration left{};                 ///< when its last byte had left, or it was cut off
  duration arrives{};
  duration round_trip{};           ///< of the path, without jitter
  bool cut = false;                ///< by the death of a host
  std::vector<transfer_step> steps;
};

struct fabric_options {
  std::uint64_t seed = 1;
  duration detection_time = std::chrono::seconds(5);
  std::uint64_t small_message_bytes = 4096;
  std::uint64_t own_stream_bytes = 64 * 1024;
  bool wire_overhead = true;       ///< false: serialized bytes alone, to compare with models that know no headers
  std::function<message_class(const caf::type_erased_tuple&)> classify;
  std::function<void(const delivered_event&)> on_event;   ///< may be empty
  transfer_model model = transfer_model::max_min;
  tcp_options tcp;
  std::function<void(const transfer_record&)> on_transfer;  ///< may be empty
  double hole_punching = 0.7;      ///< netem/reachability.hpp
  carrier* over = nullptr;         ///< the real network; null: there is none. Outlives the fabric
  bool shaped = true;              ///< false: with a carrier, nothing takes time here
};

/// A computer and its access line.
struct machine_options {
  std::string name;
  region_index region = 0;
  data_rate up, down;
  path_quality line{};             ///< delay, jitter and so on of the line, added to those between the regions
  site_index site = no_site;       ///< whose shared links it is behind
  std::optional<coordinates> at{}; ///< where both ends have some, their distance is the delay between the regions
  nat_class nat = nat_class::open;
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
  /// Between two regions, both ways.
  void set_path(region_index a, region_index b, const path_quality& path);
  /// Links that all machines and sites inside share on their way out and in. Sites may lie in sites.
  site_index add_site(std::string name, data_rate up, data_rate down, site_index inside = no_site);
  machine_index add_machine(const machine_options& what);
  machine_index add_machine(std::string name, region_index region, data_rate up, data_rate down) {
    return add_machine({.name = std::move(name), .region = region, .up = up, .down = down});
  }

  /// A machine and its first host that pass on what others cannot send each other. Requires: no host was started that is not open.
  host_index add_relay(const machine_options& what, std::uint64_t budget_bytes);

  /// Boots a machine: a new incarnation, which has the number `incarnation` if that is given. Requires: no incarnation of it is alive.
  host_index start_host(machine_index machine, std::optional<std::uint32_t> incarnation = {});
  /// Kills a host, a paused one too. False if it is dead already.
  bool kill(host_index host, kill_scope scope);

  // -- for the carrier ------------------------------------------------------

  /// The id of a host's addresses: what identifies it anywhere.
  static caf::node_id node_of(const std::string& name, std::uint32_t incarnation);
  caf::node_id node_of(host_index host) const;
  /// The host with these addresses, here or elsewhere; one that was unknown is taken to be elsewhere and alive.
  host_index host_at(const caf::node_id& node);
  /// Whether it has been heard of: host_at would make no new host.
  bool knows(const caf::node_id& node) const;
  /// What a host elsewhere is called. Nothing happens if that is known.
  void set_name(host_index host, const std::string& name);
  /// The process of a host elsewhere is over for good: nothing is sent to it any more.
  void remote_died(host_index host);
  /// Whether an actor of a host of this process has not ended.
  bool lives(endpoint actor) const;
  /// The address of an actor by its number; empty if `node` is not a node id of ours.
  caf::strong_actor_ptr address_at(const caf::node_id& node, caf::actor_id number);
  /// Hands over what came for a host of this process. Its sender is an address of `from`, or empty.
  void deliver(endpoint from, endpoint to, caf::mailbox_element_ptr element, std::uint64_t bytes);
  /// To observers on `observer` of `of`, or of every actor of its host: it is gone for good, or cannot be reached now.
  void gone(host_index observer, host_index of, std::optional<std::uint32_t> ordinal, bool for_good);

  // -- what changes while it is used ----------------------------------------

  /// Capacities from now on; what the owner says of the line (rate_up, rate_down) stays.
  void set_rates(machine_index machine, data_rate up, data_rate down);
  void set_rates_of_site(site_index site, data_rate up, data_rate down);
  /// What the machine's line does to what it sends and to what it is sent.
  void set_line(machine_index machine, const path_quality& out, const path_quality& in);
  /// Adds a cut; heal() takes it away again.
  std::uint64_t add_cut(cut what);
  void heal(std::uint64_t cut_number);
  /// Nobody on the host runs and no compute job goes on until it is resumed. False if it is dead or paused already.
  bool pause(host_index host);
  bool resume(host_index host);
  bool paused(host_index host) const;
  /// How long a host has been paused in its life so far.
  duration paused_time(host_index host) const;
  /// Runs `action` when the host is resumed; never if it dies before. Requires: it is paused.
  void when_resumed(host_index host, std::function<void()> action);

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

  /// "uplink of home-3".
  std::string name_of(link_id link) const;
  /// One way, without jitter.
  duration delay_between(host_index from, host_index to) const;

  /// Whether a new connection from one to the other, by no relay and on none there is, would open; and when both know, at the earliest.
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

  /// The address under which other hosts reach `actor`; nothing if it has ended (wall clock: somebody else may
  /// kill its host right after it was spawned).
  caf::actor address_of(const caf::actor& actor);

  // -- what happened --------------------------------------------------------

  static constexpr std::size_t traffic_classes = 8;
  std::uint64_t traffic_bytes(std::size_t traffic_class) const { return traffic_[traffic_class]; }
  /// With a carrier: of what was handed over to hosts of this process.
  std::uint64_t received_bytes(std::size_t traffic_class) const { return received_[traffic_class]; }
  /// Messages that one host's actor put into another's mailbox without an address.
  std::uint64_t bypassed() const noexcept { return bypassed_; }
  /// exit_msg, down_msg and other system messages refused from other hosts.
  std::uint64_t refused() const noexcept { return refused_; }
  /// Messages lost because their sender or receiver was dead.
  std::uint64_t lost() const noexcept { return lost_; }
  /// Messages lost on connections that a cut made them give up.
  std::uint64_t given_up() const noexcept { return given_up_; }
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
  static constexpr std::uint32_t none = 0xffffffff;

  struct machine {
    std::string name;
    std::uint32_t place;             // index into paths_
    data_rate up, down;
    link_id uplink, downlink;
    site_index site = no_site;
    nat_class nat = nat_class::open;
    std::uint32_t incarnations = 0;
    host_index running = no_host;
    data_rate up_now;                // `up` and `down` are what the owner says
  };
  struct site {
    std::string name;
    link_id uplink, downlink;
    site_index inside;
    std::uint32_t depth;
  };
  /// Machines of one region with equal lines.
  struct place {
    region_index region;
    path_quality out, in;            // of the line, for what they send and for what they are sent
    std::uint32_t users = 0;         // machines; without any it is used again for others
  };
  struct way {
    path_quality quality;            // of the lines and the regions together
    duration lines{};                // the lines' part of the delay
    bool remembers = false;
  };
  struct route {
    link_id links[16];
    std::uint32_t length = 0;
  };
  struct host_state {
    // What every message needs comes first, in one cache line.
    machine_index machine = 0;
    std::uint32_t place = 0;
    bool alive = true;
    kill_scope died_by = kill_scope::process;
    duration died_at{};
    data_rate up;
    duration small_free{};           // when the uplink is done with the small messages so far
    link_id uplink{}, downlink{};    // its machine's
    std::uint32_t first_out = none;  // connections with bulk to send: a list through connection::out
    std::uint32_t first_in = none;   // the same through connection::in
    std::uint32_t incarnation = 0;
    std::uint32_t next_ordinal = 0;
    caf::node_id node;
    std::map<std::uint32_t, caf::strong_actor_ptr> actors{};  // by ordinal
    rng jitter;                      // of what it sends
    bool paused = false;
    duration paused_at{}, paused_for{};  // paused_for: before the present pause
    bool elsewhere = false;          // in another process
    std::map<std::uint32_t, caf::strong_actor_ptr> ports{};  // with a carrier: of its actors that are elsewhere or observed
    std::size_t sweep_at = 64;       // so many of them: time to drop those that nobody has
  };
  struct active_cut {
    std::uint64_t number;
    cut what;
    duration since;
  };
  /// What one host cannot send to another because of a cut, besides its bulk.
  struct stall {
    std::uint64_t number;
    duration since{};
    host_index relay = no_host;
    std::vector<std::uint32_t> small;  // in_transit, in order
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
    const char* type = "";
    duration left{};                 // when its last byte was on its way
    std::uint32_t line = none;       // bulk: its connection
    std::uint32_t next = none;       // bulk: what is sent after it
    host_index relay = no_host;      // passes it on
  };
  struct neighbours {
    std::uint32_t next = none, previous = none;
  };
  /// The bulk of one direction between two hosts; forgotten when all of it has arrived.
  struct connection {
    host_index from, to;
    std::uint32_t first = none;      // is being sent, the others after it
    std::uint32_t last = none;
    std::uint32_t under_way = 0;     // has left, will arrive
    bool stopped = false;            // by a cut
    transport::transfer_id flow{};   // of what is being sent
    duration last_arrival{};         // latest so far: keeps order under jitter
    neighbours out, in;              // among the connections with bulk to send of either host
    std::unique_ptr<transfer_record> record{};  // of what is being sent, if somebody wants to know
  };

  /// What waits for its connection.
  struct held_message {
    in_transit what;
    host_index to;
    message_class kind;
  };

  void send(port& to, caf::mailbox_element_ptr element);
  bool small(std::uint64_t bytes, message_class what) const;
  void depart(in_transit what, host_index to, message_class kind);
  bool reaches(in_transit& what, host_index to, message_class kind);
  void release(host_index from, host_index to);
  reachability& nat_rules();
  void observe(port& of, caf::attachable_ptr observer);
  caf::strong_actor_ptr port_at(host_index host, std::uint32_t ordinal);
  void sweep(host_state& host);
  std::size_t forget(port& of, const caf::attachable::token& what);
  void sweep(port& of);

  void actor_born(host_index host, const caf::strong_actor_ptr& actor);
  void actor_ended(caf::actor_id id, caf::error reason);
  caf::strong_actor_ptr port_of(const caf::strong_actor_ptr& actor);
  std::uint32_t connect(host_index from, host_index to);
  void link_in(std::uint32_t line);
  void link_out(std::uint32_t line);
  void forget_if_idle(std::uint32_t line);
  void start_next(std::uint32_t line, duration now);
  std::uint32_t keep(in_transit what);
  void arrive_later(std::uint32_t what, duration& last, duration delay);
  void arrive(std::uint32_t in_flight);
  void hand_over(std::unique_lock<std::recursive_mutex>& guard, port& to, host_index on_behalf,
                 caf::mailbox_element_ptr element);
  bool blocked(host_index from, host_index to, host_index relay = no_host) const;
  bool silent_for(host_index a, host_index b, duration time) const;
  path_now path_of(host_index from, host_index to, host_index relay) const;
  void retune(std::uint32_t line, duration now);
  void break_line(std::uint32_t line, duration now, std::atomic<std::uint64_t>& count);
  stall& stall_of(host_index from, host_index to, host_index relay);
  void stop_line(std::uint32_t line, duration now);
  void give_up(std::uint64_t pair, std::uint64_t number);
  void go_on(std::uint64_t pair, stall what);
  void suspect();
  void use_place(machine_index machine, const place& what);
  void notify(port& of, port::observer observer, const caf::error& reason);
  void tell(port& of, std::uint64_t observer, const caf::error& reason);
  const way& way_between(host_index from, host_index to) const;
  way combine(const place& from, const place& to) const;
  std::uint32_t place_of(const place& what);
  host_index add_host(machine_index index, std::uint32_t incarnation, caf::node_id node);
  tcp_window& window_of(host_index from, host_index to, duration now);
  path_memory* memory_of(const way& on, host_index from, host_index to);
  duration delay_of(host_index from, host_index to) const;
  duration drawn_delay(host_index from, host_index to);
  duration drawn_delay(host_index from, host_index relay, host_index to);
  duration small_delay(host_index from, host_index to, std::uint64_t bytes, message_class what);
  route route_between(const machine& from, const machine& to) const;
  route route_through(const machine& from, host_index relay, const machine& to) const;
  void end_record(connection& line, duration left, duration arrives, bool cut);
  duration& last_small(host_index from, host_index to);
  void settle();                      // re-solves the flows and plans the next completion
  void flows_due();
  void finish_flows(duration now);
  duration flow_time();
  void flows_change();
  std::uint64_t counted_by_caf(const caf::type_erased_tuple& content, const char* name) const;
  std::uint64_t wire_size(const caf::type_erased_tuple& content, const message_class& what);
  void report(const delivered_event& what);

  caf::actor_system& system_;
  coordinator& clock_;
  fabric_options options_;
  mutable std::recursive_mutex mutex_;
  std::vector<std::string> regions_;
  std::vector<std::vector<path_quality>> between_;   // by region, twice
  std::vector<place> places_;
  std::vector<std::vector<way>> ways_;            // by place, twice
  std::vector<site> sites_;
  std::vector<active_cut> cuts_;
  std::map<std::uint64_t, stall> stalls_;         // by the pair of hosts
  std::map<host_index, std::vector<std::function<void()>>> when_resumed_;
  std::uint64_t next_number_ = 1;                 // of cuts and stalls
  std::vector<std::uint32_t> link_owners_;        // by link: 2 * (machine or ~site) + (1 for down)
  std::vector<coordinates> coordinates_;          // by machine, empty if none has any
  flat_map<path_memory> memories_;                // by the pair of hosts
  flat_map<tcp_window> windows_;                  // by the pair of hosts; model `tcp` alone
  std::uint64_t next_transfer_ = 1;
  std::deque<machine> machines_;                  // their names are handed out
  std::vector<host_state> hosts_;
  flat_map<actor_state> actors_;                  // by actor id
  // By the pair of hosts. Iterated only to drop idle ones.
  flat_map<duration> last_small_;                 // latest arrival of a small message so far
  flat_map<std::uint32_t> line_of_;               // index of the connection + 1
  std::vector<connection> connections_;           // named by index
  std::vector<std::uint32_t> connections_free_;
  std::size_t sending_ = 0;                       // connections with bulk to send
  std::vector<in_transit> in_flight_;             // waits, is being sent or will arrive; named by index
  std::vector<std::uint32_t> in_flight_free_;
  std::unique_ptr<reachability> reach_;           // none if all are open
  std::map<std::uint64_t, std::vector<held_message>> held_;  // by the pair of hosts
  transport flows_;
  std::atomic<bool> reporting_{false};
  bool flows_changed_ = false;
  event_handle next_flow_event_ = 0;
  duration next_flow_time_{};
  std::array<std::atomic<std::uint64_t>, traffic_classes> traffic_{}, received_{};
  std::atomic<std::uint64_t> bypassed_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> given_up_{0};
  std::map<caf::node_id, host_index> hosts_by_node_;          // with a carrier alone, as the next one
  std::map<caf::node_id, machine_index> machines_by_node_;    // of incarnation 0
  fabric_link link_ = std::make_shared<std::atomic<fabric*>>(this);
};

}  // namespace shoal::netem
