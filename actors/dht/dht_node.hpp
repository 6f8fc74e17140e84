// One node of the distributed hash table: each host runs one, and they have no centre. Kademlia with expiring,
// signed records and a dictionary of sub-keys under each key; what is new to it, docs/adr/0010 says why.
//
// What it understands of the actors of its own host: `store`, `withdraw`, and `lookup`
// answered by `found`; `serve`, which says whether others can dial this host; and `introduced`, which names another node.
//
// Steps:
//   join    ask the bootstrap addresses who is near to us; then look ourselves up, and a point in each
//           farther bucket. Without bootstraps, or if none of them answers for long, a node is alone and says so
//           to nobody: it answers from what it has. Bootstraps that have not answered yet are asked again now and then.
//   serve   a node that others cannot dial is a client. It looks up and stores like any other, and is asked for nothing:
//           everything it sends says that it is one, so that nobody keeps it, names it or gives it records. A node begins as its
//           configuration says, and changes when `serve` does; it then looks itself up, so that others learn of it.
//   write   sign; send to the `replicas` nodes nearest to the key; in a small network first to those that seem to be, as
//           a look-up takes round trips. Who they are is kept for `replicas_fresh` after the farthest of them has last said that it
//           is one (at most for `refresh`), unless a nearer node appears, one of them fails, or one says that it knows enough that
//           are nearer: then they are looked up again, and get everything of ours.
//   read    the first time an iterative look-up that merges what all replicas have. After that one replica is asked for
//           what changed, or nobody if we are one: a poll of a dictionary of many costs the bytes of the changes.
//           The nearest replica that had nothing is sent what was found.
//           A replica whose answer is late counts as one: if we took its place, and so answered ourselves, we would know nothing. What it
//           says when the look-up is over is kept all the same.
//   hold    records that nobody has stored for `republish` go to the replicas of now, by the replicas themselves;
//           a node that has become one gets them from the nearest of the others.
//   fail    a reset connection is final; who has not answered a request for `request_timeout`, but others since, is asked that again, up to
//           twice; who is silent altogether is left alone for a time that
//           doubles from a second to a minute, and then is a sixteenth of its silence, and then asked again: so long after a cut two halves of the
//           network find together. Who has nobody else asks those it had given up as well.
//           `unreachable` is silence: a host that was paused or cut off comes back. Who was left alone and speaks again is
//           given what it missed, like a newcomer; a node that handled nothing for long does not take itself for a replica
//           that has all, but reads what the others have.
//   expire  a record ends when its owner's clock said. Who holds or reads it compares with the clock of most of those it
//           talks to (clock_votes.hpp), so that one wrong clock hides no records but its owner's. Of what an
//           owner said, the last counts. When that ends before something it had said earlier, as after its clock was
//           ahead, it withdraws the rest.
//
// Bytes on the wire: write: replicas * (330 + value). Poll: 2 small messages + (330 + value) for each change.
// Left out: proof that a node owns its id; a limit on how many nodes one attacker runs; a check that who says that it can be
// dialled can (it goes like any node that does not answer); serving over relays, whose budgets it would eat: where
// nobody can be dialled, nobody serves.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/dht/blacklist.hpp"
#include "actors/dht/clock_votes.hpp"
#include "actors/dht/iterative_lookup.hpp"
#include "actors/dht/record_store.hpp"
#include "actors/dht/routing_table.hpp"
#include "actors/dht/signed_record.hpp"
#include "actors/protocol_actor.hpp"

namespace shoal::actors {

/// What an iterative look-up came to; for tests and benchmarks.
struct lookup_report {
  unsigned hops = 0;
  std::size_t asked = 0;
  bool for_key = false;
};

struct dht_config {
  std::vector<caf::actor> bootstraps;              ///< addresses of nodes; some may be dead
  /// Who is at these addresses now: asked when nobody is left who is known. May be empty: the same as at first.
  std::function<std::vector<caf::actor>()> bootstraps_now;
  bool serves = true;                              ///< others can dial this host, as far as is known at the start
  std::size_t bucket_size = 20;
  std::size_t replicas = 5;
  std::size_t alpha = 3;
  duration slow_after = std::chrono::milliseconds(500);   ///< from then on others are asked as well
  duration request_timeout = std::chrono::seconds(3);
  duration blacklist_time = std::chrono::seconds(1);
  /// The replicas of a key are known for so long after they last said so, and all of them are read that often.
  duration replicas_fresh = std::chrono::seconds(30);
  duration cache_time = std::chrono::milliseconds(50);   ///< what was read so lately is not read again
  duration maintenance = std::chrono::seconds(10);
  duration refresh = std::chrono::minutes(5);      ///< between two look-ups of random points
  duration republish = std::chrono::minutes(10);
  duration bootstrap_patience = std::chrono::seconds(10);
  record_limits limits;
  std::shared_ptr<signature_memo> memo;            ///< shared by the nodes of one process; may be null
  std::function<void(const lookup_report&)> on_lookup;   ///< may be empty
  bool honours_expired = false;                    ///< a known bug, for tests (actors::mutant::expired_record)
};

class dht_node final : public protocol_actor {
 public:
  dht_node(caf::actor_config& config, host& on, dht_config options);

  caf::behavior make_behavior() override;
  void on_exit() override;

  // Limits on messages.
  static constexpr std::size_t most_contacts = 32;
  static constexpr std::size_t most_records = 128;   ///< of one message; longer dictionaries come in several
  static constexpr std::size_t most_waiting = 1024;  ///< readers of one key

 private:
  enum timer : std::uint32_t { request_timer, join_timer, flush_timer, maintenance_timer, probe_timer };
  enum class kind : std::uint8_t { bootstrap, ping, search, poll, put };

  /// Of `read` records are asked for too.
  enum class goal : std::uint8_t { refresh, join, read, write, republish };

  struct request {
    kind what = kind::ping;
    contact to;                       // of bootstraps the id is zero
    std::uint64_t search = 0;
    std::string key;
    std::uint64_t after = 0;
    duration asked{};
    unsigned again = 0;               // how often it was asked the same before
  };
  /// Whom we asked something that is still open.
  struct watch {
    unsigned open = 0;
    duration answered{duration::min()};   // any of our requests, last
  };
  struct search {
    iterative_lookup lookup;
    std::string key;                  // empty: only nodes are looked for
    goal what = goal::refresh;
    std::set<node_id> lacking;        // answered, and had nothing under the key
  };
  struct replica_set {
    std::vector<contact> members;     // nearest first; we may be among them
    duration since{};                 // when they were looked up
    duration confirmed{};             // when we last knew that they are the nearest
    bool stale = false;
    bool merged = false;              // we have read what all of them had
  };
  struct view {                       // what we know of a key that we read
    std::map<node_id, std::uint64_t> after;
    duration fetched{duration::min()};
    duration used{};
  };
  struct poll_state {
    std::set<node_id> asked;
    unsigned open = 0;
  };
  struct own_record {
    shared<signed_record> what;
    bool pending = true;              // the replicas do not have it yet
    std::set<node_id> told;           // while it is pending: who has it already
    duration sent{};
    std::int64_t longest = 0;         // the latest expiration that we ever gave it: somebody may still have that record
  };
  struct reader {
    caf::actor reply_to;
    std::uint64_t token = 0;
  };
  using dictionary = std::map<std::string, own_record>;

  void on_lost(const caf::actor_addr& whom, bool dead);

  // for this host's actors
  bool is_local();
  void on_store(store& what);
  void on_withdraw(const withdraw& what);
  void on_lookup(const lookup& what);
  void on_serve(const serve& what);
  void on_introduced(const introduced& what);
  void publish(const std::string& key, record entry, bool withdrawn);
  void write(const std::string& key);
  void read(const std::string& key);
  void answer(const std::string& key);

  // for other nodes
  bool is_valid(const contact& from);
  void on_nodes_query(const nodes_query& what);
  void on_records_query(const records_query& what);
  void on_put(const record_put& what);
  void on_answer(query_answer& what);
  void on_receipt(const put_receipt& what);
  /// Checks and keeps records of others. Says how many it took for bad.
  void keep(record_store& in, const std::string& key, const std::vector<shared<signed_record>>& records);
  std::vector<contact> known_near(const node_id& target, const node_id& asker) const;

  // requests
  template <class Message>
  void ask(request what, Message message);
  void query(const contact& to, std::uint64_t search, const std::string& key, kind what, bool nodes, unsigned again = 0);
  void put(const contact& to, const std::string& key, std::vector<shared<signed_record>> records, unsigned again = 0);
  std::optional<request> close(std::uint64_t token, bool answered = false);
  void on_request_timer();
  void wait_for_requests();
  void on_slow(std::uint64_t token);
  void on_failed(std::uint64_t token, bool dead);
  /// That request was lost and not the node, which has answered others since.
  void ask_again(const request& what);
  bool blocked(const node_id& who) const { return blacklist_.blocks(who, now()); }

  // look-ups
  void start_search(const node_id& target, const std::string& key, goal what);
  void pump(std::uint64_t search);
  void finish(std::uint64_t search);
  void poll(const std::string& key);
  void poll_failed(const std::string& key);
  const replica_set* replicas_of(const std::string& key) const;
  bool holds(const replica_set& set) const;
  /// Keeps what the answer to `to` says of its key. True if the sender has more.
  bool take_records(const request& to, const query_answer& what);
  /// `nearest` and we, where we belong among them; at most `replicas`.
  std::vector<contact> with_us(const node_id& target, std::vector<contact> nearest) const;
  /// What is pending, to those who do not have it yet. `guess`: there may be others.
  void send_own(const std::string& key, const std::vector<contact>& members, bool guess);
  void send_kept(const std::string& key, const replica_set& set);
  void repair(const search& done);

  // membership
  void join();
  /// Or only those who are left alone for a while.
  bool knows_nobody() const;
  /// Whom else than at first, if we have asked before.
  void look_at_addresses();
  void joined();
  /// Who is a client is known by nobody.
  void met(const contact& who, bool client);
  void drop_from_sets(const node_id& who);
  /// One of those that we take for the replicas of `key` is none, as it says.
  void outdated(const std::string& key);
  /// It is one, as it says.
  void confirmed(const std::string& key, const node_id& by);
  std::uint8_t others_nearer(const std::string& key);
  /// `self`: our neighbours have not been looked up.
  void announce(bool self);
  void heard_bootstrap(const contact& who);
  std::uint8_t client() const noexcept { return serves_ ? 0 : 1; }
  /// As most have it; our own clock is for what we publish.
  std::int64_t utc() { return votes_.utc_ns(here().utc_ns(), now()); }
  void newcomer(const contact& who);
  void lost(const node_id& who, bool dead, duration asked);
  void hand_over(const contact& to);
  void flush_soon();
  void maintain();
  /// Called for each message that is handled.
  void handles();
  std::optional<request> overdue(std::uint64_t token, const caf::strong_actor_ptr& sender, bool client);
  void remember(const contact& who);
  /// Asks again whom we gave up, once it is not left alone any more.
  void probe_later(const node_id& who);
  void probe(std::uint64_t token);

  dht_config options_;
  identity identity_;
  rng draws_;
  contact self_;
  routing_table table_;
  blacklist blacklist_;
  clock_votes votes_;
  record_store store_;                // as a replica
  record_store cache_;                // of what we read and are no replica of
  std::map<std::string, dictionary> own_;
  std::map<std::string, replica_set> sets_;
  std::map<std::string, view> views_;
  std::map<std::string, poll_state> polls_;
  std::map<std::string, std::vector<reader>> waiting_;
  std::map<std::uint64_t, search> searches_;
  std::map<std::string, std::uint64_t> search_of_;
  std::map<std::uint64_t, request> requests_;
  std::map<std::uint64_t, request> overdue_;   // given up, and may still be answered
  struct deadline {
    duration at{};
    std::uint64_t token = 0;
  };
  std::deque<deadline> slow_, late_;  // of requests, answered ones among them; the next first
  std::optional<duration> next_deadline_;      // that the timer is set for
  std::map<caf::actor_addr, watch> watched_;
  std::set<node_id> dead_;            // others name them until they find out themselves
  std::deque<node_id> dead_order_;
  std::deque<contact> remembered_;    // silent once; asked again now and then
  std::map<std::uint64_t, node_id> probes_;   // of remembered_, each once
  std::deque<caf::actor> unheard_;    // bootstraps that have not answered yet
  struct rank {
    std::uint64_t changes = 0;
    std::uint8_t others_nearer = 0;
  };
  std::map<std::string, rank> ranks_;  // of keys, as the table was after so many changes
  std::uint64_t next_token_ = 1, last_version_ = 0;
  std::size_t bootstraps_open_ = 0;
  unsigned join_attempts_ = 0;
  bool serves_, ready_ = false, joining_search_ = false, flush_planned_ = false;
  duration started_{}, next_refresh_{}, last_handled_{};
};

}  // namespace shoal::actors
