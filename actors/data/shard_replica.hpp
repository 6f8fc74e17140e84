// One of several replicas of a data shard, without actors: who is the primary, what the others
// know, and what may be said to peers when. The shard's ledger is changed by the shard
// (data_shard.hpp); this tells the backups.
//
// Order: replicas are numbered in the order in which their incarnations started (their territory,
// sample_ledger.hpp). The primary is the first of those that have the ledger. A restarted replica
// is a new one, behind all others.
//
// Steps:
//   found     number 0 is primary at once: there is nothing to know. Everybody else seeks: it
//   greets all whose records it finds until one
//             is the primary, or names it. Who finds nobody for seek_time goes on without what the
//             others knew, and says so: all their indices are doubtful.
//   stream    the primary sends a new backup its whole ledger, and from then on every change,
//   numbered; each piece is
//             acknowledged. Who misses a number greets with stream 0, and gets the whole again.
//   keep      what must not be lost with the primary (when_kept): a commit is confirmed to its
//   peer, a returned index is leased
//             again, and a fresh one is issued (in reservations of many at once), when every backup
//             that is there has it.
//   take over when the primary is gone, the first backup is it; the others greet that one. (The
//   primary says who has the whole ledger: nobody
//             else is waited for. If that one knows nobody, or waits for us, the next is it.) What
//             the primary had not told is claimed by the peers that have it. A fellow that we
//             cannot reach may do the same elsewhere: we part from it as well.
//   certain   the primary is known to have been dead, and not to have gone on alone before, if its
//   process was reset and it
//             had confirmed within detection_time that it counts on us. Otherwise it may live on:
//             what is issued again of what it had is reported (sample_ledger::settle_doubt). What
//             is in doubt is streamed like all else: who takes over from a primary that had parted
//             from another one has parted from that one, too. Who goes on without a ledger has
//             parted from everybody whom it found and could not reach, and a primary from those.
//   accuse    a peer that says it had what we never leased to it may have it from a backup that
//   serves on the other side of a cut, which we have
//             not noticed yet. It is called a liar, and its commit refused, when every backup has
//             said since that it is one (when_sure), and so has who is expected to become one: the
//             former primary's other backups, a primary that has yielded to us, and that one's
//             backups.
//   meet      two primaries, after a cut: the later one gives its whole ledger over to the first,
//   which merges them, and then
//             becomes its backup. While it does, it answers peers with the first one's address; if
//             that one yields itself meanwhile, to the one that greets us then.
//
// Bytes on the wire: about 70 for each changed stretch of indices and each backup, and an
// acknowledgement; two greetings a beat. Left out: a majority. Two replicas have none, and training
// is to go on with one; so two primaries can exist, and territories keep their fresh indices apart.
#pragma once

#include "actors/conduct/conduct.hpp"
#include "actors/data/messages.hpp"
#include "actors/data/piece_order.hpp"
#include "actors/data/sample_ledger.hpp"
#include "actors/dht/messages.hpp"

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/message.hpp>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace shoal::actors {

enum class replica_role : std::uint8_t { seeking, backup, primary, yielding };

struct replica_config {
  unsigned replicas = 1;
  duration detection_time =
      std::chrono::seconds(5); ///< how long a lost replica is silent before the others know
  duration beat = std::chrono::seconds(1); ///< between greetings; well below detection_time
  duration seek_time = std::chrono::seconds(10);
  std::uint32_t reserve = 1024; ///< fresh indices that may be issued before the backups hear of it
  std::size_t update_rows = 1024; ///< of one message
  std::shared_ptr<actors::conduct> conduct = honest_conduct();
};

/// What a record under data_shard_key says of a replica.
struct replica_record {
  std::uint64_t territory = 0;
  replica_role role = replica_role::seeking;

  payload pack() const;
  /// Empty if `bytes` is not what pack() makes: the record of a shard that runs alone.
  static std::optional<replica_record> unpack(const payload& bytes);
};

class shard_replica {
public:
  /// What it needs of its actor.
  class io {
  public:
    virtual ~io() = default;
    virtual duration now() const = 0;
    virtual const caf::actor& self() = 0;
    virtual void send(const caf::actor& to, caf::message content) = 0;
    /// lost() is to be called when it is gone.
    virtual void watch(const caf::actor& whom) = 0;
    virtual void role_changed() = 0;
    /// Fresh indices may be issued.
    virtual void reserved() = 0;
    /// Nobody is left who knew of these.
    virtual void ledger_lost(std::uint64_t before) = 0;
    virtual void merged(const sample_ledger::merge_result& what) = 0;
    virtual void refused(std::string why) = 0;
  };

  shard_replica(io& world, replica_config config, sample_ledger& ledger);

  void start();
  replica_role role() const noexcept { return role_; }
  bool primary() const noexcept { return role_ == replica_role::primary; }
  /// The primary, as far as known; we may be it.
  caf::actor known_primary();
  replica_record record() const noexcept { return {ledger_.territory(), role_}; }
  std::size_t backups() const noexcept { return followers_.size(); }

  // Inputs.
  void on(const replica_hello& what);
  void on(const ledger_update& what);
  void on(const ledger_received& what, const caf::strong_actor_ptr& sender);
  void on(const not_primary& what, const caf::strong_actor_ptr& sender);
  void lost(const caf::actor_addr& whom, bool dead);
  void found(const std::vector<shared<actors::record>>& records);
  /// Call every config.beat; says whether records should be looked up.
  bool beat();
  /// Drops all addresses.
  void clear();

  // For the primary.
  /// Tells the backups what changed in the ledger.
  void replicate();
  /// Calls `action` when every backup has all that was said so far; at once if there are none. Not
  /// at all if we yield before.
  void when_kept(std::function<void()> action);
  /// As when_kept(), and every backup is asked for a sign of life, and who is expected to become
  /// one is waited for: one that serves on the other side of a cut, which we have not noticed,
  /// gives none, and we have parted from it when `action` is called.
  void when_sure(std::function<void()> action);
  /// So many further fresh indices are wanted; reserved() follows if there are not so many now.
  void want(std::uint64_t count);

private:
  enum class update_kind : std::uint8_t {
    changes,
    first,
    whole,
    handover
  }; // first: of the whole ledger; whole: it ends here
  struct follower {
    caf::actor address;
    std::uint64_t stream = 0, sent = 0, acked = 0;
    std::uint64_t whole =
        0; // with what it acknowledges this it has the whole ledger; 0: that is under way
    std::uint64_t acked_at_beat = 0;
    std::int64_t stalled = 0; // beats without progress
    duration heard{};         // as our backup
    bool has_ledger() const noexcept { return whole > 0 && acked >= whole; }
  };
  struct waiting {
    std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>>
        needs; // by territory: stream, sequence
    std::set<std::uint64_t> expected;
    std::function<void()> action;
  };

  void turn(replica_role to);
  void seek();
  void forget_stream();
  void follow(const replica_info& whom, bool at_once = true);
  void greet(const caf::actor& whom, std::uint64_t stream = 0, std::uint64_t token = 0);
  void take_over(bool certain);
  void part(std::uint64_t territory);
  void succeed(bool certain);
  void yield_to(const replica_info& whom);
  void hand_over();
  void on_handover(const ledger_update& what);
  /// The next one of the stream. False: it was nonsense.
  bool take(const ledger_update& what);
  void new_follower(const replica_info& who);
  void drop_follower(std::uint64_t territory);
  void expect(const replica_info& whom);
  void keep(std::function<void()> action, std::set<std::uint64_t> expected);
  void tell(std::uint64_t territory, follower& to, update_kind what, std::vector<ledger_row> rows);
  /// The whole ledger, in pieces.
  template <class Send>
  void in_pieces(Send send) const;
  void sweep();
  std::vector<replica_info> followers() const;

  io& world_;
  replica_config config_;
  sample_ledger& ledger_;
  replica_role role_ = replica_role::seeking;

  // as the primary
  std::map<std::uint64_t, follower> followers_; // by territory
  std::deque<waiting> waiting_;
  std::uint64_t next_stream_ = 1, reserved_ = 0, kept_reservation_ = 0;
  struct arrival {
    piece_order order;
    sample_ledger ledger;
  };
  std::map<std::uint64_t, arrival> arriving_; // ledgers of primaries that yield
  std::set<std::uint64_t> expected_; // who has still to follow us, and may serve as well: the
                                     // former primary's other backups, and who gave us its ledger

  // otherwise
  std::optional<replica_info> primary_;   // whom we greet
  piece_order order_;                     // of what it streams to us
  std::optional<sample_ledger> incoming_; // the whole ledger, until all of it is here
  replica_info source_;                   // whose ledger ours was last
  std::uint64_t source_reserved_ = 0;
  std::vector<replica_info> fellows_; // the other backups of `source_`
  std::vector<replica_info> heirs_;   // who followed us, or was to, when we yielded
  std::set<std::uint64_t> unreached_; // territories of fellows, or of those found, that we cannot
                                      // reach, and may be alive
  std::map<std::uint64_t, duration> gone_; // fellows before us that died, and when we heard of it
  duration confirmed_{duration::min() /
                      2}; // when we sent the greeting that the primary answered last
  duration seeking_since_{}, yielding_since_{}, referred_{duration::min() / 2};
  std::uint64_t handover_stream_ = 0, handover_pieces_ = 0;

  struct acquaintance {
    std::uint64_t territory = 0;
    duration heard{};
  };
  std::map<caf::actor_addr, acquaintance> seekers_; // others that seek
  std::set<caf::actor_addr> dead_, watched_;
  std::map<caf::actor_addr, std::uint64_t>
      known_; // replicas found while we sought, and their territories
  std::uint64_t beats_ = 0;
};

} // namespace shoal::actors
