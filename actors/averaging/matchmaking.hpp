// Finds a group for one round: the leader, the members, and the time at which it closes. A plain
// state machine; the group actor feeds it messages and carries out its requests through round_io.
//
// Steps:
// 1. Every ready peer stores a record in the DHT (key: epoch and state; sub-key: its id; address:
//   its group actor). The record's value is the peer's deadline: the time on its clock at which it
//   would close a group of its own.
// 2. Each peer follows the live, ready peer with the earliest deadline, which may be itself. That
//   group begins first. A latecomer therefore does not take over from a leader whose followers have
//   gathered.
// 3. The leader closes the group when all expected peers have joined or the group is full. After
//   its deadline, the leader closes as soon as it has a quorum: half of the known samples. Without
//   the quorum, a few stragglers could go ahead as a branch of their own. The leader waits for the
//   quorum up to matchmaking_time. Then it sends group_begun with the members and the part
//   boundaries. A request may name another quorum and a grace period. The leader then also closes
//   when the grace period after its quorum is over.
//
// No cyclic waits: (deadline, id) is a total order. The place of a peer in it stays the same during
// an attempt, however wrong its clock is. A peer only waits for one before it in the order. So a
// chain of waits ends at a peer that waits for no other. A leader that starts to follow sends its
// own followers on to its new leader. A rejection only names peers before the rejecting one.
//
// A peer that others cannot reach says so in its record. It never leads unless it is alone, and
// gets no part to reduce. If no member can be reached, the attempt fails with no_reducer. A member
// that is reached over a relay gets a part only if no member is reached directly.
//
// Trust. The network knows the host of each sender, so a peer joins only in its own name. It signs
// its entry of the roster. Each member checks all these signatures, and computes the part
// boundaries itself. A deadline that is far from our clock makes nobody lead. Members that the
// owner names as bad leaders come after all others. A leader that refuses because the states differ
// does not end the attempt while there are others to ask.
//
// A leader may close its group while a follower changes to another leader. That follower is then a
// member that never takes part, and tells all members of the group (member_declined).
#pragma once

#include "actors/averaging/messages.hpp"
#include "actors/averaging/round.hpp"
#include "actors/dht/messages.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace shoal::actors {

class matchmaking {
public:
  struct events {
    std::function<void(const group_begun&)> begun; ///< for leader and follower alike
    std::function<void(reason)> failed;
    /// The quorum that the request names has come: on_grace_over() is due after its grace period.
    std::function<void()> quorum_came = [] {};
  };

  /// `deadline` is this peer's, in UTC ns.
  matchmaking(const averaging_config& config, const round_request& request, member_info self,
              std::int64_t deadline, round_io& io, events on);

  /// The key under which the peers of one (epoch, state) find each other.
  static std::string key(std::uint64_t epoch, const state_id& state);
  /// The value of a peer's record under that key.
  struct bid {
    std::int64_t deadline = 0;
    /// False if others cannot reach the peer: it only follows.
    bool leads = true;
    payload pack() const;
    /// An invalid value gives a peer that leads after all others.
    static bid unpack(const payload& value);
  };

  void start();
  /// The owner has new information on the expected peers.
  void expect(const std::vector<expected_peer>& peers, std::uint64_t known_samples);
  void found_peers(const std::vector<shared<record>>& records);
  void on(const join_request& message, const caf::strong_actor_ptr& sender);
  void on(const join_accepted& message, const caf::strong_actor_ptr& sender);
  void on(const join_rejected& message, const caf::strong_actor_ptr& sender);
  void on(const join_withdrawn& message, const caf::strong_actor_ptr& sender);
  void on(const group_begun& message, const caf::strong_actor_ptr& sender);
  void on_down(const caf::actor_addr& whom);
  /// The deadline has passed: a leader with a quorum closes now. Without a quorum it closes as soon
  /// as it has one, or fails if this is the `last` deadline.
  void on_deadline(bool last);
  /// The grace period is over that began with events::quorum_came.
  void on_grace_over();
  /// A follower has waited long enough; the attempt fails.
  void on_give_up();

  /// The reason that later join requests get. Requires: over().
  void set_late_answer(reason why) noexcept { late_answer_ = why; }

  bool over() const noexcept { return over_; }
  /// The leader because of which the attempt failed; else zero.
  const member_id& bad_leader() const noexcept { return bad_leader_; }
  /// Whether the actor's host may be in the coming group, as far as this peer knows.
  bool knows(const caf::strong_actor_ptr& sender) const;
  /// The number of those hosts.
  std::size_t known() const { return ready_.size() + expected_.size(); }
  /// A leader's time until the last member joined, or a follower's time until the group began. 0 if
  /// no member joined.
  duration gathered() const noexcept { return gathered_; }
  bool leading() const noexcept { return !over_ && !leader_; }

private:
  struct candidate {
    caf::actor address;
    bid what;
    bool refused = false; // the candidate refused this peer, and does not lead
  };
  using rank = std::tuple<bool, std::int64_t, peer_id>; // the order in which peers lead
  rank own_rank() const { return {false, deadline_, self_.peer}; }

  void choose_leader();
  void follow(peer_id leader);
  void close_if_complete();
  /// True if the members are enough for a group.
  bool enough() const;
  bool quorum() const;
  /// The length of the vectors of both rounds together.
  std::uint64_t value_count() const {
    return request_.values.size() / 4 + request_.second.value_count;
  }
  void close();
  void fail(reason why);
  bool is_gone(const caf::actor& address) const;
  void learn(peer_id peer, const caf::actor& address, bid what);
  bool may_lead() const;
  void forget(const caf::actor_addr& whom, bool died);
  /// A restarted member may join again before the end of its former incarnation is known. The
  /// former one then loses its place, because a roster has each key once.
  void forget_former(const member_info& who);
  /// The first thing that is wrong with a group that this peer asked to join.
  std::optional<std::string> flaw_of(const group_begun& message) const;
  signature_check checker() const;
  group_begun as_roster() const;
  /// The address is on the host of this peer.
  bool is_of(peer_id peer, const caf::actor& address) const;
  /// True if the member gives something while it is on probation.
  bool is_new(const member_info& who) const;
  bool is_bad(const caf::actor& address) const;
  /// True if this peer takes the member into no group, and so does not wait for it.
  bool sits_out(const caf::actor& address) const;
  /// Far deadlines make nobody lead.
  bool near_now(std::int64_t deadline) const;
  rank rank_of(peer_id peer, const candidate& who) const {
    return {is_bad(who.address), who.what.deadline, peer};
  }
  void decline(const group_begun& message, const caf::strong_actor_ptr& sender);

  const averaging_config& config_;
  const round_request& request_;
  member_info self_;
  round_io& io_;
  events on_;
  bool over_ = false;
  bool looked_up_ = false;
  const std::int64_t deadline_;
  // Ready peers, from the DHT or from a rejection's suggestion.
  std::map<peer_id, candidate> ready_;
  std::map<peer_id, caf::actor> expected_; // in-sync peers, from their progress records
  std::map<peer_id, member_info> joined_;  // followers of this peer
  // Addresses of group actors that have ended, or that belong to an earlier attempt.
  std::vector<caf::actor_addr> gone_;
  // Empty if this peer leads.
  std::optional<peer_id> leader_;
  bool accepted_ = false;
  std::uint64_t known_samples_ = 0;
  bool lost_leader_ = false;
  bool deadline_passed_ = false;
  bool in_grace_ = false; // the quorum has come, and the grace period is not over
  duration started_{}, gathered_{};
  std::uint32_t refusals_ = 0;
  bool full_said_ = false;
  member_id bad_leader_;
  std::set<group_id> declined_;
  // Set once the group has begun.
  std::optional<group_begun> begun_;
  reason late_answer_ = reason::group_closed;
};

} // namespace shoal::actors
