// The named points of the protocols at which a fault of `faults: on:` can strike. Metrics count how
// often each is reached.
#pragma once

#include <array>
#include <string_view>

namespace shoal::actors::probes {

inline constexpr std::string_view matchmaking_begun =
    "matchmaking.begun"; ///< the peer looks for a group
/// A leader accepted this peer.
inline constexpr std::string_view matchmaking_joined = "matchmaking.joined";
/// The leader closed the group and told the members.
inline constexpr std::string_view matchmaking_led = "matchmaking.led";
inline constexpr std::string_view group_begun = "group.begun"; ///< the group is closed and known
/// One chunk of this member was acknowledged.
inline constexpr std::string_view first_part_sent = "all_reduce.first_part_sent";
/// Half of this member's chunks were acknowledged.
inline constexpr std::string_view half_sent = "all_reduce.half_sent";
/// A reducer has reduced one chunk.
inline constexpr std::string_view first_reduced = "all_reduce.first_reduced";
/// This member reduces the part of a lost reducer.
inline constexpr std::string_view part_claimed = "all_reduce.part_claimed";
/// A reducer has sent its part to half of the members.
inline constexpr std::string_view half_replied = "all_reduce.half_replied";
/// This member has all parts and has told the others.
inline constexpr std::string_view voted = "all_reduce.voted";
/// The majority has voted; the samples are not committed yet.
inline constexpr std::string_view before_commit = "all_reduce.before_commit";
/// A compute job ended.
inline constexpr std::string_view training_step = "training.step";
/// A donor has received requests for half of a state.
inline constexpr std::string_view state_half_sent = "state.half_sent";

inline constexpr std::array<std::string_view, 13> all{
    matchmaking_begun, matchmaking_joined, matchmaking_led, group_begun,  first_part_sent,
    half_sent,         first_reduced,      half_replied,    part_claimed, voted,
    before_commit,     training_step,      state_half_sent};

} // namespace shoal::actors::probes
