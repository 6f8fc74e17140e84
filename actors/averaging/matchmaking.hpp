// Finding a group for one round: who leads, who comes, when it closes. A plain state machine; the
// group actor feeds it messages and does what it asks through round_io.
//
// Steps: 1. every ready peer stores (key = epoch and state, subkey = its id, its address) with its
// deadline: when it would close a
//      group of its own, on its clock;
//   2. each follows the one with the earliest deadline among the ready peers that it believes
//   alive, itself included: its group begins
//      first, and who comes late does not take over from those that have gathered;
//   3. the leader closes the group when everybody it expects has come, when it is full, or when its
//      patience is over and those who came hold at least half of the samples that are known
//      (a few stragglers must not go ahead as a branch of their own; it waits for that half, up to
//      matchmaking_time), and sends group_begun with the members and the part boundaries.
// No cyclic waits: (deadline, id) is a total order, and nobody's changes during an attempt, however
// wrong its clock is. A peer only
//   ever waits for one that comes before it in that order, so a chain of waits ends at one that
//   waits for nobody; whoever starts to follow sends its own followers on to its leader. (A
//   rejection that names somebody else names one that comes before who rejects.)
// Who cannot be reached says so with its record, never leads unless nobody else is there, and gets
// no part; if
//   nobody can be reached the attempt fails with no_reducer. Who is reached by a relay's line alone
//   gets a part if nobody else could.
// A leader may close its group while one of its followers goes over to a smaller id: the follower
// is then a
//   member that will never come, and says so to all of that group (member_declined).
#pragma once

#include "actors/averaging/messages.hpp"
#include "actors/averaging/round.hpp"
#include "actors/dht/messages.hpp"

#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace shoal::actors {

class matchmaking {
public:
  struct events {
    std::function<void(const group_begun&)> begun; ///< for leader and follower alike
    std::function<void(reason)> failed;
  };

  /// `deadline`: utc ns.
  matchmaking(const averaging_config& config, const round_request& request, member_info self,
              std::int64_t deadline, round_io& io, events on);

  /// Under which key the peers of one (epoch, state) meet.
  static std::string key(std::uint64_t epoch, const state_id& state);
  /// What the value of a peer's record there says.
  struct standing {
    std::int64_t deadline = 0;
    bool leads = true; ///< false: it cannot be reached, and follows only
    payload pack() const;
    /// Of what is no such value: a peer that leads after all others.
    static standing unpack(const payload& value);
  };

  void start();
  /// The owner knows better now who will come.
  void expect(const std::vector<expected_peer>& peers, std::uint64_t known_samples);
  void found_peers(const std::vector<shared<record>>& records);
  void on(const join_request& message);
  void on(const join_accepted& message, const caf::strong_actor_ptr& sender);
  void on(const join_rejected& message, const caf::strong_actor_ptr& sender);
  void on(const join_withdrawn& message, const caf::strong_actor_ptr& sender);
  void on(const group_begun& message, const caf::strong_actor_ptr& sender);
  void on_down(const caf::actor_addr& whom);
  /// The leader's patience is over: it does not wait for everybody any more. If they are too few,
  /// and this was not the `last` deadline, it closes as soon as they are not.
  void on_deadline(bool last);
  /// A follower's patience is over.
  void on_give_up();

  /// What to answer to those who come too late. Requires: over().
  void set_late_answer(reason why) noexcept { late_answer_ = why; }

  bool over() const noexcept { return over_; }
  /// How long it took until the last member came (leader), or until the group began; 0: nobody
  /// came.
  duration gathered() const noexcept { return gathered_; }
  bool leading() const noexcept { return !over_ && !leader_; }

private:
  void choose_leader();
  void follow(peer_id leader);
  void close_if_complete();
  bool quorum() const;
  std::vector<double> shares(const std::vector<member_info>& members) const;
  /// Of both rounds' vectors.
  std::uint64_t value_count() const {
    return request_.values.size() / 4 + request_.second.value_count;
  }
  void close();
  void fail(reason why);
  bool is_gone(const caf::actor& address) const;
  void learn(peer_id peer, const caf::actor& address, standing what);
  bool may_lead() const;
  void forget(const caf::actor_addr& whom, bool died);
  bool valid(const group_begun& message) const;
  void decline(const group_begun& message, const caf::strong_actor_ptr& sender);

  const averaging_config& config_;
  const round_request& request_;
  member_info self_;
  round_io& io_;
  events on_;
  bool over_ = false;
  bool looked_up_ = false;
  struct candidate {
    caf::actor address;
    standing what;
  };
  using rank = std::tuple<std::int64_t, peer_id>; // the order in which peers lead
  rank own_rank() const { return {deadline_, self_.peer}; }
  const std::int64_t deadline_;
  std::map<peer_id, candidate> ready_;     // whom the DHT or a suggestion named
  std::map<peer_id, caf::actor> expected_; // in-sync peers by their progress records
  std::map<peer_id, member_info> joined_;  // my followers
  std::vector<caf::actor_addr>
      gone_; // addresses whose actor has ended, or that are of an older attempt
  std::optional<peer_id> leader_; // none: I lead
  bool accepted_ = false;
  std::uint64_t known_samples_ = 0;
  bool lost_leader_ = false;
  bool impatient_ = false;
  duration started_{}, gathered_{};
  group_id begun_; // the group that we are in, once it is
  reason late_answer_ = reason::group_closed;
};

} // namespace shoal::actors
