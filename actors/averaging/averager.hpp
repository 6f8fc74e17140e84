// The base of the actors of averaging strategies (actors/averaging/averaging_strategy.hpp): a peer
// that only averages. The peer holds a vector, and takes part in rounds that a caller on its host
// starts. The derived class decides what happens in a round. Every strategy keeps the mean of all
// peers' values, to rounding. Waits adapt to measured times: actors/averaging/deadline.hpp.
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/protocol_actor.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/message_handler.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace shoal::actors {

/// How a round ended for one peer.
struct averaging_done {
  std::uint64_t round = 0;
  actors::outcome outcome = outcome::ok;
  actors::reason reason = reason::none;
};

class averager;

struct averager_config {
  averaging_config round;  ///< groups read all of it, other strategies `sender_timeout`
  std::uint32_t index = 0; ///< the peer's number
  bool reduces = true;     ///< the peer may get a part of its group's vector to reduce
  /// The address of each peer by index, for strategies whose peers choose their partners.
  std::shared_ptr<const std::vector<caf::actor>> everyone;
  caf::actor dht; ///< where groups find together; may be empty if groups are given
  /// Called in the actor when its round is over. A callback is no message, because only the
  /// measurement needs it.
  std::function<void(std::uint32_t index, const averaging_done&)> on_done;
  /// Called when the actor starts. Its values can be read between two rounds, on the same thread,
  /// while the actor lives.
  std::function<void(std::uint32_t index, const averager&)> on_made;
  duration min_timeout = std::chrono::milliseconds(300);
};

/// To an averager of the same host: hold these values.
struct hold_values {
  payload values; ///< floats
};

/// To an averager of the same host: the round `number` begins.
struct averaging_round {
  std::uint64_t number = 0; ///< from 1, ascending
  bool available = true;    ///< false: the peer is away until the next round
  state_id meeting;         ///< names the group, for strategies by groups
  std::uint32_t wanted = 0; ///< members of the group, if all come
  /// The members and their parts, with the addresses of averagers. Null: the group finds together
  /// in the DHT.
  std::shared_ptr<const group_begun> group;
};

class averager : public protocol_actor {
public:
  averager(caf::actor_config& config, host& on, averager_config options);

  caf::behavior make_behavior() final;
  void on_exit() override;

  /// The peer's estimate of the mean.
  const payload& values() const noexcept { return values_; }

protected:
  /// Handles the messages of the strategy.
  virtual caf::message_handler handlers() = 0;
  /// The values are replaced from outside of the protocol.
  virtual void on_hold() {}
  /// The last round ends, if it has not ended yet.
  virtual void abandon() {}
  /// A round begins in which this peer is available. The round ends with over().
  virtual void begin(const averaging_round& what) = 0;
  /// A timer that begin() or later code set for the running round has run out.
  virtual void on_timer(std::uint32_t) {}

  void set_round_timer(duration delay, std::uint32_t kind) { set_timer(delay, kind, round_); }
  void over(outcome how, reason why = reason::none);

  const averager_config& options() const noexcept { return options_; }
  std::uint64_t round() const noexcept { return round_; }
  bool available() const noexcept { return available_; }
  bool running() const noexcept { return running_; }
  caf::actor sender() { return caf::actor_cast<caf::actor>(current_sender()); }
  /// Whether another peer's values are finite, and as many as this peer's values.
  bool fits(const payload& theirs) const;

  payload values_;

private:
  averager_config options_;
  std::uint64_t round_ = 0;
  bool available_ = true, running_ = false;
};

/// averaging_strategy::spawn of a strategy whose actor is `Actor`.
template <class Actor>
caf::actor spawn_averager(caf::actor_system& system, host& on, const averager_config& options) {
  return caf::actor_cast<caf::actor>(system.spawn<Actor>(std::ref(on), options));
}

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::hold_values)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::averaging_round)
