// The data shard: leases sample indices to peers and streams the samples' bytes, up to each peer's
// credit. The ledger (sample_ledger.hpp) decides the state of each index. This actor translates and
// checks messages, keeps the lease timer, and publishes its address.
//
// Steps:
// - sample_request(credit, held) renews the held leases, and leases and sends `credit` samples.
//   Each `samples` message has at most chunk_bytes (or one sample, if that is larger).
// - lease_lost goes to a peer for held ranges that it has lost. It also goes to peers with expired
//   leases, and to peers that lose samples to a commit.
// - samples_returned ends leases. commit makes samples final.
// - copies_wanted sends copies of samples without a lease, to a peer that checks the work of
//   another one. Backups answer, too.
// - Every transition is observed as samples_moved, every index that two rounds may hold as
//   samples_reported.
//
// Trust: a peer is the host that sent the message. It changes its own leases only, and gets samples
// at its own host only. Each member has limits: leased samples, and the budgets of
// member_budgets.hpp. A commit speaks for other peers, so it counts with the certificate of its
// round only, and for the samples that each member signed (commit_proofs.hpp). Methods without
// certified steps have no such proof: there a member can name a round that never was
// (data_shard_config::proves_rounds).
//
// Bytes on the wire: samples * sample_bytes, in ceil(samples / (chunk_bytes / sample_bytes))
// messages for each contiguous range. With a fixed corpus (corpus.hpp), each message has a proof.
//
// Replicas: the primary answers peers. Backups copy its ledger and refer peers to it (not_primary).
// shard_replica.hpp has the protocol of replicas. A shard without replicas runs no such protocol.
#pragma once

#include "actors/data/commit_proofs.hpp"
#include "actors/data/corpus.hpp"
#include "actors/data/member_budgets.hpp"
#include "actors/data/messages.hpp"
#include "actors/data/proof_messages.hpp"
#include "actors/data/sample_ledger.hpp"
#include "actors/data/sample_source.hpp"
#include "actors/data/shard_hosts.hpp"
#include "actors/data/shard_replica.hpp"
#include "actors/protocol_actor.hpp"
#include "actors/reachability.hpp"
#include "actors/reachability/messages.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

enum class sample_state : std::uint8_t; // actors/data/observations.hpp

/// The DHT key with one record for each shard. The sub-key is the name and incarnation of the host.
/// The value is a shard_record.
inline constexpr std::string_view data_shard_key = "data.shard";

struct data_shard_config {
  duration lease_time = std::chrono::minutes{5}; ///< until a lease ends without a renewal
  std::uint32_t chunk_bytes = 64 * 1024;
  std::uint32_t max_credit = 1 << 16;  ///< limit for one request
  std::uint64_t max_leased = 1 << 16;  ///< samples that one member may have leased
  std::uint32_t max_ranges = 1 << 16;  ///< limit for the lists of a message
  std::uint32_t max_entries = 1 << 12; ///< members in one commit
  /// A commit counts only with the certificate of its round. Requires: each peer has it.
  bool proves_rounds = false;
  /// The shard believes verdicts of proven rounds with at least this many members. 0: of none. In a
  /// smaller group, a few hostile members are a majority, and each member's signature is genuine.
  std::uint64_t judging_members = 0;
  caf::actor dht{}; ///< DHT node of this host; empty: the shard publishes nothing
  duration record_lifetime = std::chrono::minutes{1};
  replica_config replication{};
  /// Says which hosts are replicas. Required if there are replicas.
  shard_finder find_shard{};
  /// How long a dialling for another peer may take (actors/reachability.hpp).
  duration dial_timeout = std::chrono::seconds{2};
  /// The current role, for observers outside the actor; may be null.
  std::shared_ptr<std::atomic<replica_role>> role{};
  /// The source, if everybody can check its samples. Each message then has their proof.
  std::shared_ptr<const actors::corpus> corpus{};
};

class data_shard : public protocol_actor {
public:
  /// The caller may read `ledger` when the shard does not run, to write ledger.csv. The lease time
  /// of `ledger` counts; config.lease_time is only for its construction. Requires: the ledger's
  /// block is new, and above those of all earlier shards. A shard without replicas and with a block
  /// above 0 succeeds a shard with a lost ledger. It reports all earlier samples as doubtful.
  data_shard(caf::actor_config& config, host& on, data_shard_config settings,
             std::shared_ptr<const sample_source> source, std::shared_ptr<sample_ledger> ledger);
  ~data_shard() override;
  void on_exit() override;

protected:
  caf::behavior make_behavior() override;

private:
  class replica_world;
  enum timer : std::uint32_t {
    lease_timer = 1,
    publish_timer = 2,
    beat_timer = 3,
    proof_timer = 4,
    look_token = 1
  };

  void on_request(const sample_request& what);
  /// True if `member` may get `credit` more samples. Reports why not.
  bool may_lease(peer_id peer, member_id member, std::uint32_t credit);
  /// Leases as many samples as are available, and the rest when more are reserved.
  void lease(peer_id peer, const caf::actor& to, std::uint32_t credit);
  bool answers() const { return !replica_ || replica_->primary(); }
  caf::behavior replica_behavior();
  /// Replicates the changes, and then calls `then`.
  void replicate(std::function<void()> then = {});
  void ledger_lost(std::uint64_t before);
  /// Reports those of `ranges` as doubtful that another primary may have issued: this shard issues
  /// them again, or has lost track of them.
  void report_doubtful(peer_id peer, std::span<const sample_range> ranges);
  void on_returned(const samples_returned& what);
  // Commits: data_shard_commits.cpp.
  /// A commit, and the member that sent it.
  struct handed_in {
    commit what;
    member_id member;
    /// Confirms the commit. Called when the result is replicated; never if this primary yields.
    std::function<void()> then;
  };
  /// The samples of one member of a commit. The budgets of `charged` pay for them.
  struct committed_entry {
    peer_id peer = 0;
    member_id charged;
    std::vector<sample_range> ranges;
    std::uint32_t parts_included = 0;
  };
  enum class proof { holds, wrong, incomplete };

  void on_commit(const commit& what);
  void on_commit(const proven_commit& what);
  void on_proof(const commit_proof& what);
  void on_proof_timer();
  handed_in received(const commit& what);
  void refuse(const handed_in& what, std::string why);
  void take(handed_in what);
  void take_proven(const handed_in& what);
  void take_unproven(const handed_in& what);
  /// Checks the certificate that the sender gives for `round`. `complete`: with its voters'
  /// certificates.
  proof check_proof(const group_id& round, const certified_round& by, bool complete);
  /// Handles the commits that waited for this proof.
  void round_proven(const group_id& round);
  void ask_for_proofs();
  void wait_for_proofs();
  void refer_to_primary();
  /// Succeeds if the commit is well-formed and its sender is within its limits.
  result<void> commit_is_plausible(const handed_in& what,
                                   std::span<const committed_entry> entries) const;
  void commit_when_known(const handed_in& what, std::vector<committed_entry> entries);
  void commit_all(const handed_in& what, std::span<const committed_entry> entries);
  void commit_one(const commit& what, const committed_entry& entry);
  /// Handles the claim of `peer` to `ranges` that it never got here. The peer is reported as
  /// faulty, unless another primary leased them to it.
  void refuse_claim(peer_id peer, std::string what, std::vector<sample_range> ranges);
  /// Calls `action` once all backups have confirmed their roles. False if too many claims of that
  /// member wait for it: each of them is a message to all backups, and keeps its samples.
  bool when_roles_confirmed(const member_id& whose, std::function<void()> action);
  void on_lease_timer();
  void publish();

  /// Sends the samples of `range` in messages of this type, or of the type with a proof.
  template <class Message, class Proven>
  void stream(const caf::actor& to, const sample_range& range);
  void on_copies(const copies_wanted& what);
  /// Sets the lease timer, unless it runs or no lease exists.
  void arm_lease_timer();
  void tell_lost(peer_id peer, std::vector<sample_range> ranges);
  /// Drops the address of a peer without leases.
  void forget_idle(peer_id peer);
  /// Charges the member of `peer` for samples that were sent and not used.
  void charge_wasted(peer_id peer, std::span<const sample_range> ranges);
  void on_dial_request(const dial_request& what);
  void on_dialled(const dialled& what);
  void moved(sample_state to, peer_id peer, std::vector<sample_range> ranges);
  void moved(sample_state to, peer_id peer, std::vector<sample_range> ranges, const commit& by,
             std::uint32_t parts_included);

  data_shard_config settings_;
  std::shared_ptr<const sample_source> source_;
  std::shared_ptr<sample_ledger> ledger_;
  struct client {
    caf::actor address;
    member_id member;
  };
  std::map<peer_id, client> clients_;               // peers with leases
  std::map<member_id, std::set<peer_id>> peers_of_; // the peers in clients_
  member_budgets budgets_;
  commit_proofs proofs_;
  bool proof_timer_runs_ = false;
  bool said_exhausted_ = false;
  bool lease_timer_runs_ = false;
  std::unique_ptr<replica_world> replica_world_;
  std::unique_ptr<shard_replica> replica_; // null without replicas
  dial_helper helper_;
  std::map<peer_id, std::uint32_t> owed_;     // credit that waits for a reservation
  std::map<member_id, std::size_t> in_doubt_; // claims that wait for the backups
};

} // namespace shoal::actors
