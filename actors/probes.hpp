// Points of the protocols at which `faults: on:` can strike, and which metrics count.
#pragma once

#include <array>
#include <string_view>

namespace shoal::actors::probes {

inline constexpr std::string_view matchmaking_begun = "matchmaking.begun"; ///< we look for a group
inline constexpr std::string_view matchmaking_joined =
    "matchmaking.joined"; ///< a leader accepted us
inline constexpr std::string_view matchmaking_led =
    "matchmaking.led"; ///< as leader, we closed the group and told the others
inline constexpr std::string_view group_begun = "group.begun"; ///< the group is closed and known
inline constexpr std::string_view first_part_sent =
    "all_reduce.first_part_sent"; ///< one chunk was acknowledged
inline constexpr std::string_view half_sent = "all_reduce.half_sent"; ///< half of our chunks were
inline constexpr std::string_view first_reduced =
    "all_reduce.first_reduced"; ///< as reducer, one chunk is reduced
inline constexpr std::string_view part_claimed =
    "all_reduce.part_claimed"; ///< we reduce the part of one who is lost
inline constexpr std::string_view half_replied =
    "all_reduce.half_replied"; ///< as reducer, half of the members have our part
inline constexpr std::string_view voted = "all_reduce.voted"; ///< all parts here, the others told
inline constexpr std::string_view before_commit =
    "all_reduce.before_commit"; ///< the majority has voted, samples not yet committed
inline constexpr std::string_view training_step = "training.step"; ///< a compute job ended
inline constexpr std::string_view state_half_sent =
    "state.half_sent"; ///< as donor, half of a state was asked for

inline constexpr std::array<std::string_view, 13> all{
    matchmaking_begun, matchmaking_joined, matchmaking_led, group_begun,  first_part_sent,
    half_sent,         first_reduced,      half_replied,    part_claimed, voted,
    before_commit,     training_step,      state_half_sent};

} // namespace shoal::actors::probes
