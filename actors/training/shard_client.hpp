// A peer's side of the data shard's protocol: which replica of the shard it uses, the credit for
// samples that it has given, and the commits that the shard has not answered yet. A plain state
// machine; the actor that owns it carries out what io asks for.
//
// Choice of the replica: a primary before a backup, the longest serving one first. A replica that
// died, or that answers that it is not the
//   primary, is asked again only when no other one is known, or after most_referrals referrals to
//   it.
// Credit: the client asks for samples in strides of a quarter of its window, and when its leases
// need renewal. Credit that has brought
//   nothing for two refresh intervals is lost.
// Commits: each is kept, at most most_commits of them, until a shard has answered it, and is sent
// again to every new shard.
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/data/messages.hpp"
#include "actors/data/shard_replica.hpp"
#include "actors/training/held_samples.hpp"

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/message.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

namespace shoal::actors {

struct shard_client_config {
  peer_id self = 0;
  bool streams = true; ///< false: the peer computes nothing and needs no samples
  std::uint32_t prefetch_samples = 64;
  duration min_refresh{}, max_refresh{};
};

class shard_client {
public:
  /// The effects that the client needs.
  class io {
  public:
    virtual ~io() = default;
    virtual void send(const caf::actor& to, caf::message content) = 0;
    /// The peer's own address.
    virtual const caf::actor& self() = 0;
    /// down() is to be called when `whom` is gone.
    virtual void watch(const caf::actor& whom) = 0;
    virtual void unwatch(const caf::actor& whom) = 0;
    /// found() is to be called with the shard's records.
    virtual void look_up_shards() = 0;
    /// look_up_due() is to be called after `wait`.
    virtual void look_up_shards_in(duration wait) = 0;
    /// host::failpoint.
    virtual bool failpoint(std::string_view branch) = 0;
  };

  shard_client(io& world, shard_client_config config, const held_samples& held)
      : io_(world), config_(config), held_(held) {}

  bool connected() const noexcept { return static_cast<bool>(shard_); }
  /// The known replicas.
  std::vector<caf::actor> addresses() const;
  /// Commits of rounds that led to the peer's state, and that no shard has answered.
  const std::deque<commit>& unanswered() const noexcept { return unanswered_; }

  // Finding a shard.
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
  /// Whether `sender` is a replica that the peer uses, used, or knows of.
  bool is_known(const caf::strong_actor_ptr& sender) const;
  /// `count` samples have come. Requires: is_current(the sender).
  void samples_came(std::uint32_t count, duration now);
  /// Returns leased samples that the peer will not use.
  void give_back(std::vector<sample_range> ranges);

  // Commits.
  void hand_in(commit round);
  /// The same, unless a commit of that round is waiting for its answer.
  void hand_in_once(const commit& round);
  /// False: the sender is no shard.
  bool on(const commit_received& what, const caf::strong_actor_ptr& sender);

private:
  /// One of several replicas of the shard, or the only one.
  struct shard_record {
    caf::actor address;
    std::optional<replica_record> replica; // none: the shard runs alone
  };

  bool has_replicas() const;
  /// Takes the best known replica that is not lost; a lost one only if `desperate`.
  void choose(bool desperate, duration now);
  void adopt(const caf::actor& shard, duration now);
  void leave();
  void plan_look_up(duration wait);

  io& io_;
  shard_client_config config_;
  const held_samples& held_;
  bool stopped_ = false;

  caf::actor shard_;
  std::vector<shard_record> shards_; // as last read
  std::deque<caf::actor_addr>
      former_; // the last few that the peer left: messages of theirs may still come
  std::deque<caf::actor_addr> lost_; // replicas that the peer left because they were gone
  unsigned referrals_ = 0;           // to a lost replica, since samples came last
  duration looked_up_{duration::min()};
  bool look_up_planned_ = false;

  std::uint32_t requested_ = 0; // credit that the shard has not used yet
  duration last_samples_{};
  std::deque<commit> unanswered_;
};

/// The commit of `result` in the words of one member: it speaks for itself and for the next
/// `speaks_for` - 1 members.
commit commit_of(const round_result& result, std::uint32_t speaks_for);

/// A round may end well for one member only, whose state the others then adopt. So each member of a
/// small group commits for all. In a large group that would be the square of many messages. There
/// each commits for itself and the next three, so that a commit is lost only if four neighbours
/// fail in one instant; unless hosts may be `unreachable`, where more than four lose their way
/// together.
std::uint32_t members_spoken_for(const round_result& result, bool unreachable);

} // namespace shoal::actors
