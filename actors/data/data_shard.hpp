// The data shard: leases sample indices and streams their bytes, as many as the asking peer has
// credit for. What becomes of each index is decided by its ledger (sample_ledger.hpp); this actor
// translates messages, checks them, keeps the lease timer and says where it is.
//
// Steps: sample_request(credit, held) renews the held leases and leases and sends `credit` samples
// in `samples` messages of at most chunk_bytes (one sample, if that is larger); held ranges that
// the peer has lost are answered by lease_lost, which also goes to peers whose leases expire or
// whose samples a commit takes from them. samples_returned ends leases; commit makes samples final.
// Every transition is observed as samples_moved, every index that two rounds may hold as
// samples_reported. Bytes on the wire: samples * sample_bytes, in ceil(samples / (chunk_bytes /
// sample_bytes)) messages for each contiguous range.
//
// Of several replicas one answers, the primary; the others know what it knows and say who it is
// (not_primary). What they tell each other: shard_replica.hpp. A shard that runs alone tells nobody
// anything.
#pragma once

#include "actors/data/messages.hpp"
#include "actors/data/sample_ledger.hpp"
#include "actors/data/sample_source.hpp"
#include "actors/data/shard_replica.hpp"
#include "actors/protocol_actor.hpp"
#include "actors/reachability.hpp"
#include "actors/reachability/messages.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace shoal::actors {

enum class sample_state : std::uint8_t; // actors/data/observations.hpp

/// Under this key the DHT has one record for each shard: sub-key the host's name and incarnation,
/// the address, and of one of several replicas a replica_record.
inline constexpr std::string_view data_shard_key = "data.shard";

struct data_shard_config {
  duration lease_time = std::chrono::minutes{5}; ///< without a renewal by sample_request
  std::uint32_t chunk_bytes = 64 * 1024;
  std::uint32_t max_credit = 1 << 16;  ///< samples in one request
  std::uint64_t max_leased = 1 << 22;  ///< samples that one peer may hold
  std::uint32_t max_ranges = 1 << 16;  ///< in one list of a message
  std::uint32_t max_entries = 1 << 12; ///< members in one commit
  caf::actor dht;                      ///< node of this host; none: the shard publishes nothing
  duration record_lifetime = std::chrono::minutes{1};
  replica_config replication;
  duration dial_patience = std::chrono::seconds{
      2}; ///< of a dialling that a peer wants for another (actors/reachability.hpp)
  /// What the shard is just now, for whoever looks from outside; may be null.
  std::shared_ptr<std::atomic<replica_role>> role;
};

class data_shard : public protocol_actor {
public:
  /// Whoever made `ledger` may read it when the shard does not run (to write ledger.csv). Its lease
  /// time is the one that holds; config.lease_time is for making it. Its territory has to be a
  /// number that no shard had before, above those of all that started earlier. Alone and above 0 it
  /// succeeds a shard whose ledger is lost: it says that all its samples are doubtful.
  data_shard(caf::actor_config& config, host& on, data_shard_config settings,
             std::shared_ptr<const sample_source> source, std::shared_ptr<sample_ledger> ledger);
  ~data_shard() override;
  void on_exit() override;

protected:
  caf::behavior make_behavior() override;

private:
  class replica_world;

  void on_request(const sample_request& what);
  /// As many as there are, the rest when more are reserved.
  void lease(peer_id peer, const caf::actor& to, std::uint32_t credit);
  bool answers() const { return !replica_ || replica_->primary(); }
  caf::behavior replica_behavior();
  /// What backups have to know is told, and `then` done when they know it.
  void kept(std::function<void()> then = {});
  void ledger_lost(std::uint64_t before);
  /// Says of those of `ranges` that another primary may have issued that they are issued again, or
  /// no more known.
  void report_doubtful(peer_id peer, std::span<const sample_range> ranges);
  void on_returned(const samples_returned& what);
  /// `then` is done when what came of it is kept; not at all if we yield to another primary before.
  void on_commit(const commit& what, std::function<void()> then);
  void commit_all(const commit& what, std::span<const std::vector<sample_range>> ranges,
                  const std::function<void()>& then);
  void commit_one(const commit& what, peer_id peer, std::span<const sample_range> ranges,
                  std::uint32_t parts_included);
  /// `peer` says that it has `ranges`, which it never got: a lie, unless another primary leased
  /// them to it.
  void accuse(peer_id peer, std::string what, std::vector<sample_range> ranges);
  void on_lease_timer();
  void publish();

  void stream(const caf::actor& to, const sample_range& range);
  /// Sets the lease timer, unless it runs or there is nothing that could expire.
  void arm_lease_timer();
  void tell_lost(peer_id peer, std::vector<sample_range> ranges);
  /// Forgets where a peer is that leases nothing.
  void forget_idle(peer_id peer);
  void on_dial_request(const dial_request& what);
  void on_dialled(const dialled& what);
  void moved(sample_state to, peer_id peer, std::vector<sample_range> ranges);
  void moved(sample_state to, peer_id peer, std::vector<sample_range> ranges, const commit& by,
             std::uint32_t parts_included);

  data_shard_config settings_;
  std::shared_ptr<const sample_source> source_;
  std::shared_ptr<sample_ledger> ledger_;
  std::map<peer_id, caf::actor> clients_; // those with leases
  bool lease_timer_runs_ = false;
  std::unique_ptr<replica_world> replica_world_;
  std::unique_ptr<shard_replica> replica_; // none: alone
  dial_helper helper_;
  std::map<peer_id, std::uint32_t> owed_; // credit that waits for a reservation
};

} // namespace shoal::actors
