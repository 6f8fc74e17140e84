// How a round ended and why: the closed lists that logs, metrics and the report use.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shoal::actors {

/// A member never sees `split`. Observers give it to a round that some surviving members completed
/// and others did not.
enum class outcome : std::uint8_t { ok, partial, split, failed };

enum class reason : std::uint8_t {
  none,                ///< nothing went wrong
  sender_lost,         ///< a member died before it had delivered all of its chunks
  sender_timeout,      ///< a member delivered nothing for sender_timeout
  reducer_lost,        ///< a reducer died, and too few members were left to reduce its part again
  reducer_timeout,     ///< a reducer delivered nothing until round_timeout
  leader_lost,         ///< the leader died before the round began
  group_too_small,     ///< fewer than min_group_size members joined within matchmaking_time
  matchmaking_timeout, ///< no leader accepted this peer in time
  group_closed,        ///< the leader's round had begun without this peer
  out_of_sync,         ///< this peer's state is not that of the leading branch
  member_declined,     ///< a member had gone to another group before this one began
  bad_message,         ///< a member sent what no correct member sends
  cancelled,           ///< the owner cancelled the round
  no_reducer,          ///< no member of the group can be reached by the others
  no_majority,         ///< too few members were left to agree on the result
  not_finite,          ///< this peer's own values hold NaN or infinity, which no codec takes
  busy,                ///< a donor serves as many downloads as it is configured to
  donors_lost,         ///< all donors of the state are gone, or silent
  too_slow,            ///< the swarm takes steps faster than this peer's line can download them
};

inline constexpr std::array<std::string_view, 4> outcome_names{"ok", "partial", "split", "failed"};
inline constexpr std::array<std::string_view, 19> reason_names{"none",
                                                               "sender_lost",
                                                               "sender_timeout",
                                                               "reducer_lost",
                                                               "reducer_timeout",
                                                               "leader_lost",
                                                               "group_too_small",
                                                               "matchmaking_timeout",
                                                               "group_closed",
                                                               "out_of_sync",
                                                               "member_declined",
                                                               "bad_message",
                                                               "cancelled",
                                                               "no_reducer",
                                                               "no_majority",
                                                               "not_finite",
                                                               "busy",
                                                               "donors_lost",
                                                               "too_slow"};

constexpr std::string_view to_string(outcome value) {
  return outcome_names[static_cast<std::size_t>(value)];
}
constexpr std::string_view to_string(reason value) {
  return reason_names[static_cast<std::size_t>(value)];
}

} // namespace shoal::actors
