// The averager of strategies by groups. By default the members of a group find together in the DHT
// under the group's name (actors/averaging/matchmaking.hpp), and average as training peers do.
// Where the group is given, the round runs in this actor. A given group is a short cut for swarms
// whose DHT does not fit in one process. Its exchange is the same, a part to its reducer and the
// mean back, but each is one message: no window, no acknowledgements, no vote. A reducer waits for
// all parts until `max_wait` is over, and then takes the parts that came. A peer that lacks a
// mean by then keeps its own values there. Messages of a peer and round: 2 (n - 1), for n members.
// A leader gathers for at least four look-ups. A peer that looks up before another peer's record is
// there finds the record with its next look-up.
// Source: Ryabinin et al., arXiv:2103.03239.
#pragma once

#include "actors/averaging/averager.hpp"
#include "actors/averaging/deadline.hpp"

#include <caf/actor_addr.hpp>

#include <memory>
#include <vector>

namespace shoal::actors {

class group_averager final : public averager {
public:
  group_averager(caf::actor_config& config, host& on, averager_config options);
  void on_exit() override;

private:
  enum timer : std::uint32_t { timed_out };

  caf::message_handler handlers() override;
  void abandon() override;
  void begin(const averaging_round& what) override;
  void on_timer(std::uint32_t kind) override;

  void find_group(const averaging_round& what);
  void run_given(const averaging_round& what);
  void on_part(std::uint32_t sender, const caf::actor_addr& by, const payload& values);
  void keep_part(std::uint32_t sender, const payload& values);
  void on_mean(std::uint32_t sender, const payload& values);
  void reduce_mine();
  bool is_member(std::uint32_t member, const caf::actor_addr& sender) const;

  adaptive_deadline gathering_;
  caf::actor group_; // while a group is looked for

  struct given_group {
    std::shared_ptr<const group_begun> group;
    std::uint32_t self = 0;
    std::vector<payload> parts; // contributions to this member's part, by sender
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
  std::vector<early_part> early_parts_; // sent for the round that begins next
};

} // namespace shoal::actors
