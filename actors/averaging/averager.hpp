// A peer that only averages: it holds a vector, and takes part in rounds that somebody on its host
// starts. What a round is depends on the strategy; the values of all peers stay what their mean was
// (to rounding) with each of them.
//   moshpit, random_groups   an all-reduce in a group of few; who meets is the plan's business
//   (kernels/mixing.hpp) all_reduce               one in a group of all; without somebody, nothing
//   happens parameter_server         one in which peer 0 alone reduces gossip each peer offers its
//   values to a random one: both hold the mean of the two afterwards
//                            (the asked one moves by half of the difference and answers with it, so
//                            that a lost answer can change the mean, and nothing else; who waits
//                            for an answer refuses others; three tries, each at a random time,
//                            because if all offer at once all refuse)
//   push_sum                 values and a weight w, 1 at first, are shared out equally among a peer
//   and those it knows in
//                            the exponential graph; the estimate is values / w. A share that nobody
//                            confirms is taken back.
// Groups find together in the DHT under a key (actors/averaging/matchmaking.hpp), or are given, and
// then the round runs in this actor: a stated short cut for swarms whose DHT does not fit in one
// process. The exchange is the same, a part to its reducer and its mean back, but each is one
// message: no window, nothing to acknowledge, no vote. A reducer waits for all parts until its
// patience is over and then takes those that came, and who misses a mean by then keeps its own
// values there. Messages of a peer and round: 2 (n - 1), for n members. Waits adapt to the times
// measured: actors/averaging/deadline.hpp. Nobody leads for less than four look-ups: who looked
// just before another's record was there finds it with the next one. Sources: Ryabinin et al.,
// arXiv:2103.03239; Boyd et al. 2006 (gossip); Kempe, Dobra and Gehrke, FOCS 2003 (push-sum).
#pragma once

#include "actors/averaging/deadline.hpp"
#include "actors/averaging/round.hpp"
#include "actors/protocol_actor.hpp"

#include <caf/actor_addr.hpp>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace shoal::actors {

enum class averaging_strategy : std::uint8_t {
  moshpit,
  random_groups,
  all_reduce,
  parameter_server,
  gossip,
  push_sum
};
inline constexpr std::array<std::string_view, 6> averaging_strategy_names{
    "moshpit", "random-groups", "all-reduce", "parameter-server", "gossip", "push-sum"};
constexpr std::string_view to_string(averaging_strategy s) {
  return averaging_strategy_names[static_cast<std::size_t>(s)];
}

/// What a peer comes to in a round.
struct averaging_done {
  std::uint64_t round = 0;
  actors::outcome outcome = outcome::ok;
  actors::reason reason = reason::none;
};

class averager;

struct averager_config {
  averaging_strategy strategy = averaging_strategy::moshpit;
  averaging_config round;  ///< of group strategies; sender_timeout of all
  std::uint32_t index = 0; ///< which peer we are
  std::shared_ptr<const std::vector<caf::actor>>
      everyone;   ///< addresses by index: gossip and push-sum
  caf::actor dht; ///< where groups find together; may be empty if they are given
  /// Called in the actor when its round is over. Not a message: it concerns nobody but who
  /// measures.
  std::function<void(std::uint32_t index, const averaging_done&)> on_done;
  /// Called when the actor starts: where its values can be read between two rounds, on the same
  /// thread, while it lives.
  std::function<void(std::uint32_t index, const averager&)> on_made;
  duration least_patience = std::chrono::milliseconds(300);
};

/// To an averager of the same host: hold these values.
struct hold_values {
  payload values; ///< floats
};

/// To an averager of the same host: the round `number` begins.
struct averaging_round {
  std::uint64_t number = 0;                 ///< from 1, ascending
  bool available = true;                    ///< false: as if we were not there, until the next one
  state_id meeting;                         ///< names the group
  std::uint32_t wanted = 0;                 ///< members, if everybody comes
  std::shared_ptr<const group_begun> group; ///< instead: who they are, averagers' addresses
};

class averager final : public protocol_actor {
public:
  averager(caf::actor_config& config, host& on, averager_config options);

  caf::behavior make_behavior() override;
  void on_exit() override;

  /// The estimate of the mean. For who measures, on the same thread.
  const payload& values() const noexcept { return values_; }

private:
  enum timer : std::uint32_t { patience_over, offer_now };

  void begin(averaging_round what);
  void find_group(const averaging_round& what);
  void run_given(const averaging_round& what);
  void on_part(std::uint32_t sender, const caf::actor_addr& by, const payload& values);
  void keep_part(std::uint32_t sender, const payload& values);
  void on_mean(std::uint32_t sender, const payload& values);
  void reduce_mine();
  bool is_member(std::uint32_t member, const caf::actor_addr& sender) const;
  void offer_later();
  void offer();
  void push();
  void over(outcome how, reason why = reason::none);

  averager_config options_;
  rng draws_;
  payload values_;
  double weight_ = 1;
  std::vector<double> sums_; // push-sum: values * weight
  std::uint64_t round_ = 0;
  bool available_ = true, running_ = false;
  duration begun_{};
  adaptive_deadline gathering_, answering_;

  caf::actor group_; // while a group is looked for

  struct given_group {
    std::shared_ptr<const group_begun> group;
    std::uint32_t self = 0;
    std::vector<payload> parts; // of mine, by sender
    std::uint32_t parts_missing = 0, means_missing = 0;
    std::vector<std::uint8_t> has_mean;
    std::vector<float> result;
    bool reduced = false;
  };
  std::unique_ptr<given_group> given_;
  struct early_part {
    std::uint32_t sender = 0;
    caf::actor_addr by;
    payload values;
  };
  std::vector<early_part> early_parts_; // of the round that begins next

  caf::actor asked_; // gossip: whose answer we wait for
  std::uint64_t token_ = 0;
  unsigned tries_ = 0;
  std::map<std::uint64_t, caf::actor>
      open_; // offers without an answer, also of rounds that are over

  std::map<std::uint64_t, std::pair<caf::actor, std::vector<double>>>
      unconfirmed_; // push-sum: shares by token
};

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::hold_values)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::averaging_round)
