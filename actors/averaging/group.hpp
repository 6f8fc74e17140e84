// The group actor: a member spawns one for each attempt at a round. It finds a group (matchmaking),
// runs the all-reduce (butterfly), reports the result to its owner, and stays until no member needs
// anything from it. Messages of a group that arrive before group_begun are kept.
//
// Two rounds of one group (PowerSGD): a member begins the second round as soon as its first one has
// succeeded. Members and part boundaries come from group_begun. The contribution is made from the
// mean of the first round. The second round has its own group id, derived from the group's, so that
// no message counts for the wrong round. Early messages are kept. A member that is lost in the
// first round is lost in the second. A member whose first round failed says so (member_declined)
// and has no vote in the second. At most one mean of the first round has a majority, so all members
// of the second round hold the same mean.
//
// The owner gets one report: of the second round, with the values of both rounds, or of the first
// round if that failed. Each round may take round_timeout.
//
// With averaging_config::guard a round has a guard (guard.hpp). The actor then stays until the
// guard is idle: the members' values are checked, and the cases of the round are closed. The owner
// has its report long before, and computes what the guard asks for (audit_duty.hpp).
#pragma once

#include "actors/averaging/butterfly.hpp"
#include "actors/averaging/guard.hpp"
#include "actors/averaging/matchmaking.hpp"
#include "actors/averaging/round.hpp"
#include "actors/protocol_actor.hpp"

#include <caf/message_handler.hpp>

#include <deque>
#include <map>
#include <memory>
#include <type_traits>
#include <variant>
#include <vector>

namespace shoal::actors {

class group_actor final : public protocol_actor, private round_io, private guard_io {
public:
  /// `owner` is a local actor; it gets one round_report. A tick{cancel} from the owner cancels the
  /// attempt.
  group_actor(caf::actor_config& config, host& on, caf::actor owner, averaging_config options,
              round_request request);

  static constexpr std::uint32_t cancel = 100;

  caf::behavior make_behavior() override;
  void on_exit() override;

private:
  using early_message =
      std::variant<member_declined, part_chunk, reduced_chunk, part_query, part_claim, member_ready,
                   member_finished, round_commitment, commitments_seen, chunk_hashes>;
  enum timer : std::uint32_t {
    poll,
    second_look,
    deadline,
    last_deadline,
    give_up,
    round_over,
    look_at_senders,
    leave,
    grace_over,
    guard_tick
  };

  void on_down(const caf::actor_addr& whom) override;
  void on_timer(const tick& what);
  void look_up();
  void found_peers(const found& what);
  void begin(const group_begun& group);
  void begin_round(round_request request, group_begun group);
  void begin_second();
  void conclude(round_result result);
  void report(round_result result);
  void decline_second();
  bool has_second() const { return request_.second.value_count > 0; }
  bool of_second(const group_id& group) const {
    return has_second() && begun_ && group == second_group(begun_->group);
  }
  bool finished() const { return !rounds_.empty() && rounds_.back().finished(); }
  void matchmaking_failed(reason why);
  void leave_if_idle();
  void end();
  template <class Message>
  void for_round(Message& message);
  template <class Message>
  void of_round(Message& message);
  bool may_keep(const caf::strong_actor_ptr& sender, std::uint64_t bytes);
  template <class Message>
  bool may_keep(const Message& message) {
    std::uint64_t bytes = 0;
    if constexpr (requires { message.data; }) bytes = message.data.size();
    return may_keep(current_sender(), bytes);
  }
  template <class Message>
  static constexpr bool is_for_guard =
      std::is_same_v<Message, round_commitment> || std::is_same_v<Message, commitments_seen> ||
      std::is_same_v<Message, chunk_hashes>;
  bool is_member(peer_id peer) const;
  template <class Message>
  bool hand_over(Message& message, const caf::strong_actor_ptr& sender);

  // With a guard: group_guard.cpp.
  caf::message_handler guard_handlers();
  template <class Message>
  void for_guard(Message& message);
  void begin_guard(butterfly& round);
  bool guard_is_idle() const { return !guard_ || guard_->idle(); }

  // Implements guard_io.
  void wake_in(duration time) override;
  void values_may_leave(const std::vector<std::uint32_t>& without) override;
  void leave_out(std::uint32_t member, const char* why) override;
  bool is_lost(std::uint32_t member) const override;
  void convict(const evidence& proof, std::uint32_t culprit) override;
  void convict(const verdict& proof, std::uint32_t culprit) override;
  void recompute(recomputation what) override;
  void note_failure(std::uint32_t member, std::string_view what) override;
  void observe(const observation& what) override;

  // Implements round_io.
  void send_to(const caf::actor& to, caf::message content) override;
  void watch(const caf::actor& whom) override;
  void probe(std::string_view point) override;
  bool failpoint(std::string_view branch) override;
  duration time() const override;
  std::int64_t utc_ns() const override;
  peer_id peer_of(const caf::strong_actor_ptr& address) const override;
  member_id member_of(const caf::strong_actor_ptr& address) const override;
  bool is_banned(const member_id& who) const override;
  signature sign(const digest& statement) const override;
  bool is_signed_by(const key256& key, const digest& statement, const signature& by) const override;
  void suspect(peer_id culprit, std::string why) override;
  void convict(peer_id culprit, const contradiction& proof) override;

  caf::actor owner_;
  // matchmaking_ reads these two where they stand.
  averaging_config options_;
  round_request request_;
  std::string key_;
  std::optional<matchmaking> matchmaking_;
  std::optional<group_begun> begun_;
  std::deque<butterfly> rounds_;     // the rounds that have begun: one or two
  std::optional<round_guard> guard_; // the only round's
  payload first_mean_;
  id128 first_version_;
  std::vector<std::pair<caf::strong_actor_ptr, early_message>> early_;
  struct kept {
    std::uint64_t messages = 0, bytes = 0;
  };
  static constexpr std::uint64_t most_of_strangers = 64;
  std::map<peer_id, kept> early_from_;
  kept strangers_; // all hosts of which matchmaking does not know
  std::vector<caf::actor_addr> watched_;
  bool looked_up_ = false;
  bool last_deadline_ = false; // the leader's wait is all of matchmaking_time
  bool reported_ = false;
};

} // namespace shoal::actors
