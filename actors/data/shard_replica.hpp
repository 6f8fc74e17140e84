// One replica of a data shard, without actors: a plain state machine. It elects the primary,
// streams the primary's ledger to the backups, and says when a change is safe to confirm to a peer.
// The primary's data_shard changes the ledger; shard_replica passes the changes on.
//
// Terms:
// - The primary answers peers. A backup holds a copy of its ledger. A seeking replica looks for the
//   primary. A yielding one is a former primary that hands its ledger over to an earlier one.
// - Each replica has its own block of sample indices, from which it alone issues fresh indices
//   (sample_ledger.hpp). Blocks are numbered by the start of their incarnations, so the number
//   orders replicas. A restarted replica gets a new block, after all others.
// - The primary is the first live replica that has the ledger.
// - A replica has diverged from another one if each may be serving peers without the other. Index
//   ranges that the other one may change are then uncertain.
//
// Messages: replica_hello is a greeting. ledger_update carries a piece of a ledger, and
// ledger_received acknowledges it. not_primary refers the receiver to the primary.
//
// Steps:
// - Start: replica 0 is the primary at once, because there is no ledger to copy. Every other
//   replica greets all replicas whose records it finds, until one is the primary or names it. A
//   replica that finds no primary for seek_time serves without a ledger. It reports all earlier
//   indices as doubtful.
// - Stream: the primary sends a new backup its whole ledger, then every change, in numbered pieces.
//   The backup acknowledges each piece, and greets the primary every beat. A backup that misses a
//   piece greets with stream 0, and gets the whole ledger again.
// - Replicate: some changes must survive the primary. A commit is confirmed to its peer only when
//   every connected backup has it (when_replicated). The same holds for a returned index before it
//   is leased again, and for a fresh index before it is issued. Fresh indices are reserved many at
//   a time.
// - Take over: when the primary is lost, the first backup becomes the primary, and the others greet
//   it. The stream names the backups that have the whole ledger; no other replica is waited for. A
//   backup asks the next one if the first knows no primary, or if the first waits for it. Peers
//   claim the leases that the lost primary had not replicated. The new primary diverges from every
//   backup that it cannot reach, because that one may take over, too.
// - Confirmed death: a backup knows that the primary is dead under two conditions. Its process was
//   reset, and it had confirmed this backup within detection_time. Otherwise the former primary may
//   still serve. The new primary then diverges from it, and reports indices that it issues again
//   (sample_ledger::report_uncertain).
// - Inherited divergence: uncertain ranges are part of the stream. A backup that takes over from a
//   diverged primary has diverged from the same replicas. A replica that starts without a ledger
//   has diverged from every replica that it found and could not reach.
// - Faulty peers: a peer may claim samples that this primary never leased to it. Another replica
//   may have leased them, on the other side of a cut that is not noticed yet. So a claim is refused
//   and reported only after every backup has confirmed its role (when_roles_confirmed). Replicas
//   that are expected to become backups have to confirm, too. Those are the lost primary's other
//   backups, a primary that has yielded, and its backups.
// - Merge: after a cut there may be two primaries. The later one hands its whole ledger over to the
//   earlier one, which merges the two. The later one then becomes its backup. During the hand-over
//   it refers peers to the earlier primary. If the earlier primary yields itself meanwhile, the
//   ledger goes to the next primary that sends a greeting.
//
// Trust: a replica believes only replicas, which are the hosts that the scenario names as data
// shards (shard_hosts.hpp). The `from` of a message is its sender's own address. A replica that
// lies can spoil the ledger: replicas trust each other with it. It cannot stop the primary for
// long. A backup that does not acknowledge is dropped after most_stalled_beats, and has to wait
// longer after each time. An expected replica that does not follow within follow_time counts as
// diverged.
//
// Bytes on the wire: about 70 for each changed range of indices and each backup, and an
// acknowledgement. Two greetings each beat.
//
// Left out: a majority vote. Two replicas have no majority, and training has to go on with one. So
// two primaries can exist at a time. Separate blocks keep their fresh indices apart.
#pragma once

#include "actors/conduct/conduct.hpp"
#include "actors/data/messages.hpp"
#include "actors/data/piece_order.hpp"
#include "actors/data/sample_ledger.hpp"
#include "actors/data/shard_hosts.hpp"
#include "actors/data/shard_record.hpp"
#include "actors/dht/messages.hpp"

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/message.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

struct replica_config {
  unsigned replicas = 1;
  /// How long a lost replica is silent before the others notice.
  duration detection_time = std::chrono::seconds(5);
  duration beat = std::chrono::seconds(1); ///< between greetings; well below detection_time
  duration seek_time = std::chrono::seconds(10);
  std::uint32_t reserve = 1024; ///< fresh indices that may be issued before the backups hear of it
  std::size_t update_rows = 1024; ///< the limit for one message of a whole ledger
  /// How long an expected replica is waited for. It is then treated as unreachable.
  duration follow_time = std::chrono::seconds(30);
  std::shared_ptr<actors::conduct> conduct = honest_conduct();
};

// shard_replica.cpp has the roles, shard_replica_stream.cpp the primary's stream to its backups,
// and shard_replica_merge.cpp the meeting of two primaries.
class shard_replica {
public:
  /// The effects that a replica needs of its actor.
  class io {
  public:
    virtual ~io() = default;
    virtual duration now() const = 0;
    virtual const caf::actor& self() = 0;
    virtual void send(const caf::actor& to, caf::message content) = 0;
    /// The actor calls lost() after the end of `whom`.
    virtual void watch(const caf::actor& whom) = 0;
    /// See shard_finder.
    virtual std::optional<std::size_t> replica_of(const caf::strong_actor_ptr& address,
                                                  std::string_view certificate) = 0;
    virtual void role_changed() = 0;
    /// Fresh indices have become available: the reservation is replicated.
    virtual void reserved() = 0;
    /// No live replica knows what became of the indices below `before`.
    virtual void ledger_lost(std::uint64_t before) = 0;
    virtual void merged(const sample_ledger::merge_result& what) = 0;
    /// The message that is being handled is refused.
    virtual void refused(std::string why) = 0;
  };

  shard_replica(io& world, replica_config config, sample_ledger& ledger);

  void start();
  replica_role role() const noexcept { return role_; }
  bool primary() const noexcept { return role_ == replica_role::primary; }
  /// The primary, as far as known; it may be this replica.
  caf::actor known_primary();
  replica_record record() const noexcept { return {ledger_.index_block(), role_}; }
  std::size_t backups() const noexcept { return followers_.size(); }

  // Inputs.
  void on(const replica_hello& what, const caf::strong_actor_ptr& sender);
  void on(const ledger_update& what, const caf::strong_actor_ptr& sender);
  void on(const ledger_received& what, const caf::strong_actor_ptr& sender);
  void on(const not_primary& what, const caf::strong_actor_ptr& sender);
  void lost(const caf::actor_addr& whom, bool dead);
  void found(const std::vector<shared<actors::record>>& records);
  /// Called every config.beat. True if the actor should look up the replicas' records.
  bool beat();
  /// Drops all addresses.
  void clear();

  // For the primary.
  /// Sends the changes of the ledger to the backups.
  void replicate();
  /// Calls `action` when every backup has all changes so far; at once without backups. Never calls
  /// it if this primary yields first.
  void when_replicated(std::function<void()> action);
  /// As when_replicated(), but every backup also confirms its role, and expected backups are waited
  /// for. A backup that serves behind an unnoticed cut does not confirm. This replica has diverged
  /// from it by the time `action` is called.
  void when_roles_confirmed(std::function<void()> action);
  /// Asks for `count` more fresh indices. Calls io::reserved() later if they are not available now.
  void want(std::uint64_t count);

private:
  /// Replicas that were found and have not followed yet, in units of the number of replicas.
  static constexpr std::size_t most_known = 16;
  /// Rows of one message. A message of a correct replica has fewer, because it is cut.
  static constexpr std::size_t most_rows = std::size_t{1} << 16;
  /// Rows of a whole ledger that arrives: about as many as fit into 1 GiB.
  static constexpr std::size_t most_ledger_rows = std::size_t{1} << 23;

  // `first`: a piece of the whole ledger. `whole`: its last piece.
  enum class update_kind : std::uint8_t { changes, first, whole, handover };
  struct follower {
    caf::actor address;
    std::uint64_t stream = 0, sent = 0, acked = 0;
    // The acknowledgement that completes the whole ledger; 0: the ledger is not sent yet.
    std::uint64_t whole = 0;
    std::uint64_t acked_at_beat = 0;
    std::int64_t stalled = 0; // beats without progress
    duration heard{};         // when it last greeted as a backup
    std::size_t host = 0;     // the number of its host among the shard's hosts
    bool has_ledger() const noexcept { return whole > 0 && acked >= whole; }
  };
  struct waiting {
    // By index block: stream and sequence number.
    std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> needs;
    std::set<std::uint64_t> expected;
    std::function<void()> action;
  };

  /// True if a replica sent the message, and `from` is that replica's address.
  bool is_from_replica(std::string_view kind, const replica_info& from,
                       const caf::strong_actor_ptr& sender);
  static caf::actor_addr address_of(const caf::actor& whom);
  static caf::strong_actor_ptr strong(const caf::actor& whom);
  void turn(replica_role to);
  void seek();
  void forget_stream();
  void follow(const replica_info& whom, bool at_once = true);
  void greet(const caf::actor& whom, std::uint64_t stream = 0, std::uint64_t token = 0);
  void take_over(bool confirmed_dead);
  void diverge_from(std::uint64_t index_block);
  void succeed(bool confirmed_dead);
  void yield_to(const replica_info& whom);
  void hand_over();
  void on_handover(const ledger_update& what);
  /// Applies the next piece of the stream. False if the piece is invalid.
  bool take(const ledger_update& what);
  void new_follower(const replica_info& who);
  void drop_follower(std::uint64_t index_block);
  /// Drops followers that acknowledge nothing.
  void drop_stalled();
  /// The followers of that host must not delay the primary again and again.
  void note_stall(std::size_t host);
  /// Ends the wait for expected replicas that do not follow.
  void end_expectations();
  void expect(const replica_info& whom);
  void when_acknowledged(std::function<void()> action, std::set<std::uint64_t> expected);
  void tell(std::uint64_t index_block, follower& to, update_kind what,
            std::vector<ledger_row> rows);
  /// Calls `send(rows, last)` for each piece of the whole ledger.
  void in_pieces(const std::function<void(std::vector<ledger_row>, bool)>& send) const;
  void sweep();
  std::vector<replica_info> followers() const;

  io& world_;
  replica_config config_;
  sample_ledger& ledger_;
  replica_role role_ = replica_role::seeking;

  // For a primary.
  std::map<std::uint64_t, follower> followers_; // by index_block
  std::deque<waiting> waiting_;
  std::uint64_t next_stream_ = 1, reserved_ = 0, replicated_reservation_ = 0;
  struct arrival {
    piece_order order;
    sample_ledger ledger;
    std::size_t host = 0;
    std::size_t rows = 0;
  };
  std::map<std::uint64_t, arrival> arriving_; // ledgers of primaries that yield to this one
  // Replicas that have not followed this primary yet and may serve, too: the former primary's other
  // backups, and primaries that handed their ledgers over.
  std::map<std::uint64_t, duration> expected_; // with the time since when
  /// Hosts whose followers stalled: how often, and when the next one may follow.
  struct stall {
    unsigned count = 0;
    duration until{};
  };
  std::map<std::size_t, stall> stalls_;

  // For other roles.
  std::optional<replica_info> primary_;   // the replica to greet
  piece_order order_;                     // orders the stream from `primary_`
  std::optional<sample_ledger> incoming_; // the whole ledger, until it is complete
  std::size_t incoming_rows_ = 0;
  replica_info source_; // the primary that the ledger came from
  std::uint64_t source_reserved_ = 0;
  std::vector<replica_info> other_backups_;  // the other backups of `source_`
  std::vector<replica_info> former_backups_; // backups, actual or expected, at the time of yielding
  // Blocks of backups and of found replicas that cannot be reached, and may be alive.
  std::set<std::uint64_t> unreachable_;
  std::map<std::uint64_t, duration>
      dead_backups_; // earlier backups that died, with the time of that news
  // When the greeting was sent that the primary answered last.
  duration confirmed_{duration::min() / 2};
  duration seeking_since_{}, yielding_since_{}, referred_{duration::min() / 2};
  std::uint64_t handover_stream_ = 0, handover_pieces_ = 0;

  struct seeker {
    std::uint64_t index_block = 0;
    duration heard{};
  };
  std::map<caf::actor_addr, seeker> seekers_; // other seeking replicas
  std::set<caf::actor_addr> dead_, watched_;
  // Replicas found while this one was seeking, and their blocks.
  std::map<caf::actor_addr, std::uint64_t> known_;
  std::uint64_t beats_ = 0;
};

} // namespace shoal::actors
