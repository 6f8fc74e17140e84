// The averager-group actor: each member spawns one for one attempt at one round. It finds a group
// (matchmaking), runs the all-reduce (butterfly), reports the result to its owner, and stays until
// no member needs anything from it. Messages of a group that arrive before group_begun are kept.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "actors/averaging/butterfly.hpp"
#include "actors/averaging/matchmaking.hpp"
#include "actors/averaging/round.hpp"
#include "actors/protocol_actor.hpp"

namespace shoal::actors {

class group_actor final : public protocol_actor, private round_io {
 public:
  /// `owner` is a local actor; it gets one round_report. A tick{cancel} from it gives the round up.
  group_actor(caf::actor_config& config, host& on, caf::actor owner, averaging_config options,
              round_request request);

  static constexpr std::uint32_t cancel = 100;

  caf::behavior make_behavior() override;
  void on_exit() override;

 private:
  using early_message = std::variant<member_declined, part_chunk, reduced_chunk, part_query, part_claim, member_ready,
                                     member_finished>;
  enum timer : std::uint32_t { poll, deadline, last_deadline, give_up, round_over, look_at_senders, leave };

  void on_down(const caf::actor_addr& whom) override;
  void on_timer(std::uint32_t kind);
  void look_up();
  void begin(const group_begun& group);
  void conclude(round_result result);
  void matchmaking_failed(reason why);
  void leave_if_idle();
  template <class Message>
  void for_round(Message& message);
  template <class Message>
  void of_round(Message& message);

  // round_io
  void send_to(const caf::actor& to, caf::message content) override;
  void watch(const caf::actor& whom) override;
  void probe(std::string_view point) override;
  duration time() const override;
  void suspect(peer_id culprit, std::string why) override;

  caf::actor owner_;
  averaging_config options_;
  round_request request_;
  std::string key_;
  std::optional<matchmaking> matchmaking_;
  std::optional<butterfly> round_;
  std::vector<std::pair<caf::strong_actor_ptr, early_message>> early_;
  std::vector<caf::actor_addr> watched_;
  bool last_deadline_ = false;                 // patience is all of matchmaking_time
  bool reported_ = false;
};

}  // namespace shoal::actors
