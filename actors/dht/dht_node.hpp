// One node of the distributed hash table: each host runs one, and there is no central node.
// Kademlia with expiring, signed records and a dictionary of sub-keys under each key; docs/adr/0010
// gives the reasons for what is new to it.
//
// The actors of its own host send it `store`, `withdraw` and `lookup`, which `found` answers. They
// also send `serve`, which says whether others can dial this host, `introduced`, which names
// another node, and `link_lost`, which doubts one.
//
// Steps:
// - join: the node asks the bootstrap addresses for the nodes near its own id. Then it looks up its
//   own id, and a point in each farther bucket (bootstrap.hpp). Without a bootstrap node, or if
//   none answers for long, the node is alone.
// - meet: nodes that join at the same time may not find each other. Two neighbouring parts of the
//   id space then ignore each other for ever, because each look-up asks the nearest nodes that it
//   knows. So a node of a large network looks into its empty buckets, soon after it has joined and
//   ever more seldom. These look-ups leave out the nodes on its own side of the bucket, which know
//   as little as the node itself.
// - identity: a node belongs to the member that its host's certificate names. Its id follows from
//   its address (node_id.hpp). A message is from the node whose address sent it, and an answer may
//   name other nodes only under the ids of their addresses. The routing table has one entry for
//   each member, and a look-up that joins or reads asks along two disjoint paths. A silent or
//   dead address is left alone; other addresses of its host are not.
// - serve: a node that others cannot dial is a client. A client looks up and stores like any other
//   node, and receives no requests. Each of its messages says that it is a client, so that no node
//   keeps it, names it or gives it records. A node begins as its configuration says, and changes
//   with `serve`. A node that begins to serve looks up its own id, so that others learn of it.
// - write: the node signs the record and sends it to the `replicas` nodes nearest to the key. In a
//   small network it first sends the record to the nodes that seem nearest, because a look-up takes
//   round trips. replica_sets.hpp says how long the replicas are known. New replicas get all
//   records of this host (own_records.hpp).
// - read: the first read is an iterative look-up that merges the records of all replicas. Later
//   reads poll one replica for changes, or none if this node is a replica. So the poll of a large
//   dictionary costs the bytes of its changes. A read repairs the nearest replica that had no
//   records, by sending them. The look-up waits for a late replica, because a node in its place
//   would know no records. A late answer is kept even after the look-up.
// - hold: a replica sends records that were not stored for `republish` to the current replicas. A
//   node that becomes a replica gets the records from the nearest of the other replicas.
// - fail: a reset connection is final. A request without an answer for `request_timeout` is sent
//   again, up to twice, if its node has answered other requests since. A node that answers nothing
//   is left alone for a while (blacklist.hpp) and then asked again. So two halves of a network find
//   each other after a long cut. A node without any live contact asks even those that it leaves
//   alone. `unreachable` counts as silence, because a host that was paused or cut off comes back. A
//   node that speaks again gets the records that it missed, like a new node. A node that handled no
//   message for long reads the records of the other replicas, because its own may be old.
// - admit: a node keeps a record only if the swarm admits the record's owner. Either the host knows
//   the owner, or the owner itself sent the record, or a certificate came with it. A node sends the
//   certificate with the first record of an owner that it gives to another node. A reader that asks
//   for changes after that record has the certificate. So a key that the swarm does not admit
//   stores nothing.
// - expire: a record ends when its owner's clock says. Replicas and readers compare the end with
//   the clock of most nodes that they talk to (clock_votes.hpp). A wrong clock hides only the
//   records of its own host. The last version of a record counts. If it ends earlier than an older
//   version, its owner withdraws it then.
//
// Bytes on the wire: a write takes replicas * (330 + value). A poll takes 2 small messages, and 330
// + value for each change.
//
// Left out:
// - a defence against members that are most of the replicas of a key: they can withhold records,
//   but not change them;
// - a check that a node can be dialled as it says (other nodes drop it like any node that does not
//   answer);
// - serving over relays, whose budgets it would use up: where no node can be dialled, no node
//   serves.
//
// The decisions are in plain state machines, one file each; the actor translates messages and
// effects. The sources of the actor are dht_node.cpp (messages), dht_node_requests.cpp,
// dht_node_lookups.cpp and dht_node_membership.cpp.
#pragma once

#include "actors/conduct/conduct.hpp"
#include "actors/dht/blacklist.hpp"
#include "actors/dht/bootstrap.hpp"
#include "actors/dht/clock_votes.hpp"
#include "actors/dht/dht_config.hpp"
#include "actors/dht/iterative_lookup.hpp"
#include "actors/dht/lost_nodes.hpp"
#include "actors/dht/messages.hpp"
#include "actors/dht/own_records.hpp"
#include "actors/dht/read_cache.hpp"
#include "actors/dht/record_store.hpp"
#include "actors/dht/replica_polls.hpp"
#include "actors/dht/replica_rank.hpp"
#include "actors/dht/replica_sets.hpp"
#include "actors/dht/request_tracker.hpp"
#include "actors/dht/routing_table.hpp"
#include "actors/dht/signed_record.hpp"
#include "actors/dht/waiting_proofs.hpp"
#include "actors/protocol_actor.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shoal::actors {

class dht_node final : public protocol_actor {
public:
  dht_node(caf::actor_config& config, host& on, dht_config options);

  caf::behavior make_behavior() override;
  void on_exit() override;

  // Limits on messages.
  static constexpr std::size_t most_contacts = 32;
  /// The limit of one message. Longer dictionaries come in several messages.
  static constexpr std::size_t most_records = 128;
  static constexpr std::size_t most_certificate_bytes = 8192;
  static constexpr std::size_t most_waiting =
      1024; ///< readers of one key that wait for its records

private:
  using kind = request_tracker::kind;
  using request = request_tracker::request;
  using records_of_key = std::vector<shared<signed_record>>;

  enum timer : std::uint32_t {
    request_timer,
    join_timer,
    flush_timer,
    maintenance_timer,
    probe_timer
  };

  /// Why a look-up runs. A `read` asks for records, too. `fill` looks into an empty bucket.
  enum class goal : std::uint8_t { refresh, join, fill, read, write, republish };

  struct search {
    iterative_lookup lookup;
    std::string key; // empty: the look-up finds nodes, no records
    goal what = goal::refresh;
    std::set<node_id> lacking; // nodes that answered and had nothing under the key
  };
  struct reader {
    caf::actor reply_to;
    std::uint64_t token = 0;
  };

  /// All data of the actor. The end of the actor drops it as a whole, because two dead actors that
  /// refer to each other are never freed.
  struct state {
    state(dht_config config, const contact& self, const host& on, rng random, duration now);

    dht_config options;
    contact self;
    rng draws;
    routing_table table;
    blacklist left_alone;
    lost_nodes lost;
    clock_votes votes;
    bootstrap entry;
    request_tracker requests;
    record_store store; // as a replica
    read_cache cache;
    own_records own;
    replica_sets sets;
    replica_rank rank;
    replica_polls polls;
    std::map<std::string, std::vector<reader>> waiting;
    std::map<std::uint64_t, search> searches;
    std::map<std::string, std::uint64_t> search_of;
    std::map<key256, std::string> certificates; // by the owner; each was verified
    waiting_proofs later;                       // verdicts about groups that the host does not know
    std::uint64_t next_token = 1;
    bool serves, flush_planned = false;
    duration next_refresh, last_handled{};
    duration next_fill{}, fill_pause{};
  };

  // -- dht_node.cpp: messages

  void on_tick(const tick& what);
  /// Called for each message: detects that this node handled none for long.
  void note_activity();

  // Messages of this host's actors.
  bool is_local();
  void on_store(store& what);
  void on_withdraw(const withdraw& what);
  void on_lookup(const lookup& what);
  void on_serve(const serve& what);
  void on_introduced(const introduced& what);
  void on_link_lost(const link_lost& what);
  void on_proof(const proof& what);
  void on_evidence(const evidence& what);
  void on_verdict(const verdict& what);
  void judge_again();
  void pass_on(const proof& what);
  void publish(const std::string& key, record entry, bool withdrawn);

  // Messages of other nodes.
  /// The id of the node at that address; zero if no node can be there.
  node_id id_of(const caf::actor& address) const;
  /// True if the message is from the node that it states.
  bool is_valid(const contact& from);
  /// The nodes of an answer that may be asked: one of each member, under the id of its address.
  void drop_false_contacts(std::vector<contact>& named) const;
  void on_nodes_query(const nodes_query& what);
  void on_records_query(const records_query& what);
  void on_put(const record_put& what);
  void on_answer(query_answer& what);
  /// True if the answer is from the node that was asked, and of the right kind. A false answer
  /// counts as misbehaviour.
  bool answers(const request& to, const query_answer& what);
  void on_late_answer(const query_answer& what);
  void on_receipt(const put_receipt& what);
  std::vector<contact> known_near(const node_id& target, const node_id& asker) const;
  /// Checks and keeps records of other owners.
  void keep(record_store& in, const std::string& key, const records_of_key& records);
  /// Why a record that the sender of the message has sent is not kept; empty if it may be.
  std::string_view refusal(const std::string& key, const signed_record& what);
  void learn_certificates(const std::vector<owner_certificate>& certificates);
  /// Adds the owner's certificate unless it is there already or this node does not have it.
  void add_certificate(std::vector<owner_certificate>& to, const key256& owner) const;
  /// Keeps the records of an answer. True if the sender has more.
  bool take_records(const request& to, const query_answer& what);
  /// A replica says whether enough other nodes are nearer to the key than itself.
  void on_rank(const request& done, std::uint8_t others_nearer);

  // -- dht_node_requests.cpp: requests

  template <class Message>
  void ask(request what, Message message);
  /// Asks an address whose node is unknown for the nodes near this one.
  void ask_address(const caf::actor& address, kind what);
  void ping(const contact& to) { query(to, 0, {}, kind::ping, false); }
  void query(const contact& to, std::uint64_t search, const std::string& key, kind what, bool nodes,
             unsigned again = 0);
  void put(const contact& to, const std::string& key, records_of_key records, unsigned again = 0);
  /// Puts of at most `most_records` each.
  void put_all(const contact& to, const std::string& key, const records_of_key& records);
  request close(std::uint64_t token, bool answered);
  void wait_for_requests();
  void on_request_timer();
  void on_slow(std::uint64_t token);
  void on_failed(std::uint64_t token, bool dead);
  void on_bootstrap_failed();
  /// Sends a lost request again. The node has answered other requests since.
  void ask_again(const request& what);
  void on_lost(const caf::actor_addr& whom, bool dead);
  /// A late answer of the sender to a request that was given up: the node is back.
  std::optional<request> take_overdue(std::uint64_t token, bool client);

  // -- dht_node_lookups.cpp: look-ups, reads and writes

  void write(const std::string& key);
  void write_all();
  /// Sends pending records to those members that lack them. `guess`: other nodes may be the true
  /// replicas.
  void send_own(const std::string& key, const std::vector<contact>& members, bool guess);
  /// Sends own records of these keys to their replicas again, soon.
  void send_again(const std::vector<std::string>& keys);
  void flush_soon();
  void read(const std::string& key);
  void answer(const std::string& key);
  void poll(const std::string& key);
  void start_search(const node_id& target, const std::string& key, goal what);
  void pump(std::uint64_t search);
  void finish(std::uint64_t search);
  void finish_read(const search& done, const replica_set& set);
  /// `nearest`, with this node at its place if it serves.
  std::vector<contact> with_us(const node_id& target, std::vector<contact> nearest) const;
  /// Null if the replicas have to be looked up.
  const replica_set* current_replicas(const std::string& key);
  void republish(const std::string& key, const replica_set& set);
  /// Sends the records to the nearest replica that had none: it is new, or lost a message.
  void repair(const search& done);
  records_of_key living(const record_store& in, const std::string& key, std::size_t most);

  // -- dht_node_membership.cpp: other nodes, and maintenance

  void join();
  void joined();
  /// Looks up points farther away than the neighbours, so that this node knows the whole id space
  /// and is known there.
  void fill_soon();
  void announce();
  /// Looks into empty buckets.
  void fill_table();
  /// True if the node would learn nothing for this look-up from `who`.
  bool is_on_our_side(const contact& who, goal what, const node_id& target) const {
    return what == goal::fill &&
           common_prefix(state_->self.id, who.id) > common_prefix(state_->self.id, target);
  }
  void look_up_self() { start_search(state_->self.id, {}, goal::refresh); }
  /// A node has sent a message. No node keeps a client.
  void met(const contact& who, bool client);
  void newcomer(const contact& who);
  /// Sends a new replica the records that it lacks.
  void hand_over(const contact& to);
  void heard_bootstrap(const contact& who);
  void lost(const contact& who, bool dead, duration asked);
  void probe_later(const contact& who);
  void probe(std::uint64_t token);
  bool is_left_alone(const contact& who) const {
    return state_->left_alone.blocks(who.where(), now());
  }
  /// True if no node is known that may be asked now.
  bool knows_nobody() const;
  std::uint8_t others_nearer(const std::string& key);

  void maintain();
  void drop_expired_records();
  /// Drops expired records of this host, and withdraws older versions that end later.
  void drop_own_records();
  void drop_idle_keys();
  void drop_unused_certificates();
  void renew_own_records();
  void republish_kept_records();
  void ping_silent_nodes();
  void ask_current_addresses();
  void ask_unheard_address();
  void ping_quiet_contacts();
  void refresh_table();

  std::uint8_t client() const noexcept { return state_->serves ? 0 : 1; }
  /// UTC by the clocks of most nodes. For own records this host's clock counts.
  std::int64_t utc() const { return state_->votes.utc_ns(here().utc_ns(), now()); }

  std::optional<dht_config> options_; // until the actor begins
  std::optional<state> state_;        // empty after the end of the actor
};

} // namespace shoal::actors
