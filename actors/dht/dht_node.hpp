// One node of the distributed hash table: each host runs one, and there is no central node.
// Kademlia with expiring, signed records and a dictionary of sub-keys under each key; docs/adr/0010
// gives the reasons for what is new to it.
//
// The actors of its own host send it `store`, `withdraw` and `lookup`, which `found` answers. They
// also send `serve`, which says whether others can dial this host, and `introduced`, which names
// another node.
//
// Steps:
//   join    Ask the bootstrap addresses for the nodes near this one; then look up this node's own
//   id, and a point in each
//           farther bucket (bootstrap.hpp). Without a bootstrap node, or if none answers for long,
//           a node is alone.
//   serve   A node that others cannot dial is a client. It looks up and stores like any other node,
//   and is asked nothing: each
//           of its messages says that it is a client, so that no node keeps it, names it or gives
//           it records. A node begins as its configuration says, and changes with `serve`; then it
//           looks itself up, so that others learn of it.
//   write   Sign the record; send it to the `replicas` nodes nearest to the key. A small network
//   gets it first at the nodes that
//           seem to be the nearest, because a look-up takes round trips. replica_sets.hpp says how
//           long the replicas are known; new replicas get all records of this host
//           (own_records.hpp).
//   read    The first time, an iterative look-up merges the records of all replicas. After that one
//   replica is asked
//           for changes, or none if this node is a replica: the poll of a large dictionary costs
//           the bytes of its changes. The nearest replica that had nothing is sent the records. The
//           look-up waits for a late replica, because a node in its place (even this one) would
//           know nothing; its answer is kept even after the look-up is over.
//   hold    Replicas send records that were not stored for `republish` to the replicas of that
//   time.
//           A node that becomes a replica gets the records from the nearest of the other replicas.
//   fail    A reset connection is final. A request that gets no answer for `request_timeout` is
//   sent again, up to twice, if its
//           node has answered other requests since. A node that answers nothing is left alone for a
//           while (blacklist.hpp) and then asked again: two halves of a network find each other
//           after a long cut. A node that knows no other node asks even those that it leaves alone.
//           `unreachable` counts as silence, because a host that was paused or cut off comes back.
//           A node that speaks again gets what it missed, like a new one. A node that handled no
//           message for long does not believe that it holds all records: it reads those of the
//           other replicas.
//   expire  A record ends when its owner's clock says. Replicas and readers compare the end with
//   the clock of most nodes
//           that they talk to (clock_votes.hpp). A wrong clock hides only the records of its own
//           host. The last version of a record counts. If it ends earlier than an older version,
//           its owner withdraws it then.
//
// Bytes on the wire: write: replicas * (330 + value). Poll: 2 small messages + (330 + value) for
// each change. Left out: proof that a node owns its id; a limit on the nodes of one attacker; a
// check that a node can be dialled as it says (other nodes give it up like any node that does not
// answer); serving over relays, whose budgets it would use up: where no node can be dialled, no
// node serves.
//
// The decisions are in plain state machines, one file each; the actor translates messages and
// effects. Its sources: dht_node.cpp (messages), dht_node_requests.cpp, dht_node_lookups.cpp,
// dht_node_membership.cpp.
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
#include "actors/dht/request_book.hpp"
#include "actors/dht/routing_table.hpp"
#include "actors/dht/signed_record.hpp"
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
  static constexpr std::size_t most_records =
      128; ///< of one message; longer dictionaries come in several
  static constexpr std::size_t most_waiting = 1024; ///< readers of one key

private:
  using kind = request_book::kind;
  using request = request_book::request;
  using records_of_key = std::vector<shared<signed_record>>;

  enum timer : std::uint32_t {
    request_timer,
    join_timer,
    flush_timer,
    maintenance_timer,
    probe_timer
  };

  /// `read` asks for records, too.
  enum class goal : std::uint8_t { refresh, join, read, write, republish };

  struct search {
    iterative_lookup lookup;
    std::string key; // empty: only nodes are looked for
    goal what = goal::refresh;
    std::set<node_id> lacking; // nodes that answered and had nothing under the key
  };
  struct reader {
    caf::actor reply_to;
    std::uint64_t token = 0;
  };

  /// All that the actor knows. The end of the actor drops it as a whole: two dead actors that know
  /// each other are never freed.
  struct state {
    state(dht_config config, const identity& signer, rng random, duration now);

    dht_config options;
    contact self;
    rng draws;
    routing_table table;
    blacklist left_alone;
    lost_nodes lost;
    clock_votes votes;
    bootstrap entry;
    request_book requests;
    record_store store; // as a replica
    read_cache cache;
    own_records own;
    replica_sets sets;
    replica_rank rank;
    replica_polls polls;
    std::map<std::string, std::vector<reader>> waiting;
    std::map<std::uint64_t, search> searches;
    std::map<std::string, std::uint64_t> search_of;
    std::uint64_t next_token = 1;
    bool serves, flush_planned = false;
    duration next_refresh, last_handled{};
  };

  // -- dht_node.cpp: messages

  void on_tick(const tick& what);
  /// Called for each message: detects that this node handled none for long.
  void note_activity();

  // of this host's actors
  bool is_local();
  void on_store(store& what);
  void on_withdraw(const withdraw& what);
  void on_lookup(const lookup& what);
  void on_serve(const serve& what);
  void on_introduced(const introduced& what);
  void publish(const std::string& key, record entry, bool withdrawn);

  // of other nodes
  bool is_valid(const contact& from);
  void on_nodes_query(const nodes_query& what);
  void on_records_query(const records_query& what);
  void on_put(const record_put& what);
  void on_answer(query_answer& what);
  /// True if the answer is of the node and of the kind that the request asked for; counted as
  /// misbehaviour if not.
  bool answers(const request& to, const query_answer& what);
  void on_late_answer(const query_answer& what);
  void on_receipt(const put_receipt& what);
  std::vector<contact> known_near(const node_id& target, const node_id& asker) const;
  /// Checks and keeps records of others.
  void keep(record_store& in, const std::string& key, const records_of_key& records);
  /// Keeps the records of an answer. True if the sender has more.
  bool take_records(const request& to, const query_answer& what);
  /// A replica says whether enough others are nearer to the key than itself.
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
  /// The request was lost and not its node, which has answered others since.
  void ask_again(const request& what);
  void on_lost(const caf::actor_addr& whom, bool dead);
  /// A late answer of the sender to a request that was given up: the node is back.
  std::optional<request> take_overdue(std::uint64_t token, bool client);

  // -- dht_node_lookups.cpp: look-ups, reads and writes

  void write(const std::string& key);
  void write_all();
  /// Sends what is pending to those that were not sent it. `guess`: there may be other replicas.
  void send_own(const std::string& key, const std::vector<contact>& members, bool guess);
  /// Own records of these keys are sent to their replicas again, soon.
  void send_again(const std::vector<std::string>& keys);
  void flush_soon();
  void read(const std::string& key);
  void answer(const std::string& key);
  void poll(const std::string& key);
  void start_search(const node_id& target, const std::string& key, goal what);
  void pump(std::uint64_t search);
  void finish(std::uint64_t search);
  void finish_read(const search& done, const replica_set& set);
  /// `nearest` with this node at its place, if it serves.
  std::vector<contact> with_us(const node_id& target, std::vector<contact> nearest) const;
  /// Null if the replicas have to be looked up.
  const replica_set* current_replicas(const std::string& key);
  void republish(const std::string& key, const replica_set& set);
  /// Sends the records to the nearest replica that had nothing: it is new there, or lost a message.
  void repair(const search& done);
  records_of_key living(const record_store& in, const std::string& key, std::size_t most);

  // -- dht_node_membership.cpp: other nodes, and maintenance

  void join();
  void joined();
  /// Looks up points farther than the neighbours, so that this node knows the whole space and is
  /// known in it.
  void announce();
  void look_up_self() { start_search(state_->self.id, {}, goal::refresh); }
  /// A node has said something. No node keeps a client.
  void met(const contact& who, bool client);
  void newcomer(const contact& who);
  /// Sends a new replica the records that it lacks.
  void hand_over(const contact& to);
  void heard_bootstrap(const contact& who);
  void lost(const node_id& who, bool dead, duration asked);
  void probe_later(const node_id& who);
  void probe(std::uint64_t token);
  bool is_left_alone(const node_id& who) const { return state_->left_alone.blocks(who, now()); }
  /// True if all known nodes are left alone for a while, or none is known.
  bool knows_nobody() const;
  std::uint8_t others_nearer(const std::string& key);

  void maintain();
  void drop_expired_records();
  /// Drops expired records of this host. Older versions that end later are withdrawn.
  void drop_own_records();
  void drop_idle_keys();
  void renew_own_records();
  void republish_kept_records();
  void ping_silent_nodes();
  void ask_current_addresses();
  void ask_unheard_address();
  void ping_quiet_contacts();
  void refresh_table();

  std::uint8_t client() const noexcept { return state_->serves ? 0 : 1; }
  /// UTC as most nodes have it; for own records this host's clock counts.
  std::int64_t utc() const { return state_->votes.utc_ns(here().utc_ns(), now()); }

  std::optional<state> state_; // until the end of the actor
};

} // namespace shoal::actors
