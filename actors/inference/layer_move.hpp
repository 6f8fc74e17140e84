// The move of a server to other layers, which never takes a layer's last server away. A plain state
// machine.
//   ask      the mover asks the other servers that hold its layers to stay
//   promise  a server that does not move itself promises to keep its layers for `promise`
//   move     within `timeout` after the question, if each of the mover's layers has a server that
//            has promised
// A promise begins after the question, and `timeout` is shorter than `promise`. So each layer that
// the mover leaves still has a server then, unless that server dies or is drained. A server that
// has promised begins no move. Two servers that ask at once refuse each other. Records in the DHT
// may be late or wrong: they only say whom to ask. A member that asks again and again gets promises
// at ever longer intervals, so it does not pin the others.
#pragma once

#include "actors/ids.hpp"
#include "actors/inference/placement.hpp"
#include "kernels/base/units.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace shoal::actors {

struct move_rules {
  duration timeout = std::chrono::seconds(5);
  duration promise = std::chrono::seconds(15);
};

class layer_move {
public:
  explicit layer_move(move_rules by = {});

  /// False while a move is under way or a promise lasts.
  bool may_begin(duration now) const noexcept { return !target_ && now >= promised_until_; }
  /// Begins a move from the layers `mine` to `target`. Returns the servers to ask with the number
  /// round(): those of `others` that hold one of the layers. Requires: may_begin(now).
  std::vector<peer_id> begin(layer_span mine, layer_span target,
                             std::span<const placed_server> others, duration now);
  std::uint64_t round() const noexcept { return round_; }
  /// A server of another member asks. True: this one stays until now + promise.
  bool promise(const member_id& who, duration now);
  /// Server `from` has answered question `round` that it stays with the layers `theirs`. False, and
  /// nothing changes, if it was not asked.
  bool promised(peer_id from, std::uint64_t round, layer_span theirs);
  /// The target, if the server may move now. The caller then moves at once, and calls end().
  std::optional<layer_span> due(duration now) const;
  /// The move is over, or given up.
  void end();
  bool is_under_way() const noexcept { return target_.has_value(); }
  const move_rules& by() const noexcept { return rules_; }

private:
  move_rules rules_;
  std::optional<layer_span> target_;
  layer_span mine_;
  std::map<peer_id, std::optional<layer_span>> asked_; ///< with the layers that each has promised
  duration asked_at_{}, promised_until_{};
  struct promises {
    unsigned count = 0;
    duration next{}; ///< no further promise before
  };
  std::map<member_id, promises> made_;
  std::uint64_t round_ = 0;
};

} // namespace shoal::actors
