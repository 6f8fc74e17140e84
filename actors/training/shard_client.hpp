// A peer's side of the data shard's protocol. It chooses the replica of the shard, asks for
// samples, and keeps commits until the shard has answered them. A plain state machine; its owner
// implements io.
//
// Replica: a primary before a backup, then the longest serving one first. A replica that died, or
// that answers not_primary, is asked again only when no other one is known, or after most_referrals
// referrals to it.
//
// Trust: only hosts that the scenario names as data shards count as replicas (shard_hosts.hpp). Any
// member can store a record under the shard's key, and name any address in a referral.
//
// Credit: the client asks for samples in strides of a quarter of its window, and when its leases
// need renewal. Credit without any samples for two refresh intervals is lost.
//
// Corpus: if the scenario fixes it (actors/data/corpus.hpp), samples count only with their proof. A
// shard whose proof fails has changed them. The client then asks another replica for copies of
// these samples, and uses their lease. Without another replica they stay unused.
//
// Commits: the client keeps at most most_commits commits. Each is kept until a shard has answered
// it, and sent again to every new shard. Beside each one, the client keeps the certificate of its
// round, for the shard that asks for it.
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/data/corpus.hpp"
#include "actors/data/messages.hpp"
#include "actors/data/proof_messages.hpp"
#include "actors/data/shard_replica.hpp"
#include "actors/training/held_samples.hpp"
#include "kernels/base/interval_map.hpp"
#include "kernels/base/result.hpp"

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/message.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace shoal::actors {

struct peer_config;

struct shard_client_config {
  bool streams = true; ///< false: the peer computes nothing and needs no samples
  std::uint32_t prefetch_samples = 64;
  duration min_refresh{}, max_refresh{};
  /// Says which hosts are data shards. Empty: each host with a record is one.
  shard_finder find_shard{};
  corpus_root corpus{}; ///< the samples that the scenario fixes, if it does
  std::uint64_t sample_bytes = 0;
  bool size_only = false; ///< samples may come without bytes
};

/// The configuration of a peer with these options.
shard_client_config shard_side_of(const peer_config& options, bool streams,
                                  std::uint64_t sample_bytes, bool size_only);

class shard_client {
public:
  /// The effects of the client.
  class io {
  public:
    virtual ~io() = default;
    virtual void send(const caf::actor& to, caf::message content) = 0;
    /// The peer's own address.
    virtual const caf::actor& self() = 0;
    /// The owner calls down() after the end of `whom`.
    virtual void watch(const caf::actor& whom) = 0;
    virtual void unwatch(const caf::actor& whom) = 0;
    /// The owner calls found() with the shard's records.
    virtual void look_up_shards() = 0;
    /// The owner calls look_up_due() after `wait`.
    virtual void look_up_shards_in(duration wait) = 0;
    /// See host::failpoint.
    virtual bool failpoint(std::string_view branch) = 0;
  };

  /// Samples that arrive go into `held`.
  shard_client(io& world, shard_client_config config, held_samples& held)
      : io_(world), config_(config), held_(held) {}

  bool connected() const noexcept { return static_cast<bool>(shard_); }
  /// The known replicas.
  std::vector<caf::actor> addresses() const;
  /// Commits of rounds that led to the peer's state, without an answer of a shard.
  const std::deque<commit>& unanswered() const noexcept { return unanswered_; }

  // Choice of a shard.
  void look_up(duration now);
  void look_up_due(duration now);
  void found(const std::vector<shared<record>>& records, duration now);
  void down(const caf::actor_addr& whom, duration now);
  void on(const not_primary& what, const caf::strong_actor_ptr& sender, duration now);

  // Samples.
  /// Asks for samples if the window has room, or if the leases need renewal.
  void request(duration now);
  /// The peer needs no more samples.
  void stop() { stopped_ = true; }
  bool is_current(const caf::strong_actor_ptr& sender) const;
  /// True if `sender` is a replica that the peer uses, has used, or knows of.
  bool is_known(const caf::strong_actor_ptr& sender) const;
  /// Samples have arrived. True: there are more in `held`. False: a shard that the client has left
  /// takes their leases back. Errors: how the sender has broken the rules.
  result<bool> take(const samples& what, const caf::strong_actor_ptr& sender, duration now) {
    return take_leased(what.range, what.data, nullptr, sender, now);
  }
  result<bool> take(const proven_samples& what, const caf::strong_actor_ptr& sender, duration now) {
    return take_leased(what.range, what.data, &what.proof, sender, now);
  }
  /// Copies have arrived. True: some are samples that another replica changed, and are in `held`
  /// now. Errors: as above; nobody may use the copies then.
  result<bool> take(const sample_copies& what, const caf::strong_actor_ptr& sender, duration now) {
    return take_copies(what.range, what.data, nullptr, sender, now);
  }
  result<bool> take(const proven_copies& what, const caf::strong_actor_ptr& sender, duration now) {
    return take_copies(what.range, what.data, &what.proof, sender, now);
  }
  /// The leases of these samples are lost. Those that are ready, or come as copies, are dropped.
  void lost(const std::vector<sample_range>& ranges);
  /// The highest of `claims` that a shard may have leased, or 0. A claim is the end of another
  /// peer's samples. It may be most_ahead above the last sample that a shard sent here. A peer
  /// without samples takes the lower median of the claims in place of its own last sample.
  std::uint64_t plausible_end(std::vector<std::uint64_t> claims) const;
  /// Returns leased samples that the peer will not use.
  void give_back(std::vector<sample_range> ranges);
  /// Asks for copies of samples, without a lease. They come as sample_copies or proven_copies.
  /// Without a shard, nothing happens.
  void ask_for_copies(std::vector<sample_range> ranges);

  // Commits.
  using proof = std::shared_ptr<const round_certificate>;
  /// Sends the commit of a round to the shard, and keeps it until the shard answers. `carries`: the
  /// proof goes with it.
  void hand_in(commit round, proof by = {}, bool carries = false);
  /// The same, unless a commit of that round waits for its answer.
  void hand_in_once(const commit& round);
  /// False if the sender is no shard.
  bool on(const commit_received& what, const caf::strong_actor_ptr& sender);
  /// The certificate of an unanswered commit's round, if it was handed in with it.
  proof proof_of(const group_id& round) const;

  static constexpr std::uint64_t most_ahead = std::uint64_t{1} << 20;

private:
  /// A replica of the shard, or the only shard.
  struct known_shard {
    caf::actor address;
    std::optional<replica_record> replica; // empty if the shard has no replicas
  };

  bool is_shard(const caf::actor& address, std::string_view certificate) const;

  result<bool> take_leased(const sample_range& range, const payload& data, const payload* proof,
                           const caf::strong_actor_ptr& sender, duration now);
  result<bool> take_copies(const sample_range& range, const payload& data, const payload* proof,
                           const caf::strong_actor_ptr& sender, duration now);
  void keep(const sample_range& range, const payload& data, duration now);
  enum class finding { right, malformed, changed };
  finding look_at(const sample_range& range, const payload& data, const payload* proof) const;
  /// The replica to ask for copies: the current shard, or another one if it changes samples.
  caf::actor source_of_copies() const;
  bool has_source_of_copies() const; ///< one that has not changed samples
  std::uint64_t changed_count() const;
  /// Asks for copies of `changed_`. Looks for replicas if none is left that may have them.
  void ask_for_changed(duration now);

  bool has_replicas() const;
  /// Chooses the best known replica that is not lost; with `desperate` also a lost one.
  void choose(bool desperate, duration now);
  void adopt(const caf::actor& shard, duration now);
  void leave();
  void plan_look_up(duration wait);

  io& io_;
  shard_client_config config_;
  held_samples& held_;
  bool stopped_ = false;

  caf::actor shard_;
  std::vector<known_shard> shards_; // as last read
  // The last few replicas that the peer left. Their messages may still arrive.
  std::deque<caf::actor_addr> former_;
  std::deque<caf::actor_addr> lost_;   // replicas that are gone
  std::deque<caf::actor_addr> forged_; // replicas that have changed samples
  unsigned referrals_ = 0;             // referrals to a lost replica since the last samples
  duration looked_up_{duration::min()};
  bool look_up_planned_ = false;

  std::uint32_t requested_ = 0; // credit that the shard has not used yet
  duration last_samples_{};
  std::uint64_t samples_end_ = 0; // the end of all samples that came
  interval_set changed_;          // leased samples that came changed
  duration asked_for_changed_{};
  std::deque<commit> unanswered_;
  std::map<group_id, proof> proofs_; // for unanswered commits
};

/// The commit of `result` by one member. It reports the samples of the member itself and of the
/// next `speaks_for` - 1 members.
commit commit_of(const round_result& result, std::uint32_t speaks_for);

/// True if this member's commit carries the proof of the round: it is the leader or the next
/// member. A second one carries it because the first may be lost.
bool carries_proof(const round_result& result);

/// The number of members for which each commit speaks. A round may succeed for one member only, and
/// the others then adopt its state. In a small group each member therefore commits for all. In a
/// large group that would take a quadratic number of messages, so each member commits for itself
/// and the next three. Such a commit is lost only if four neighbours fail at the same time. If
/// hosts may be `unreachable`, more than four can lose their connection together, so each member
/// commits for all.
std::uint32_t members_spoken_for(const round_result& result, bool unreachable);

} // namespace shoal::actors
