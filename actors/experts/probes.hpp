// The points of a server of experts at which tests let it die.
#pragma once

#include <array>
#include <string_view>

namespace shoal::actors::expert_probes {

inline constexpr std::string_view pass_received = "experts.pass_received";
/// A forward pass is computed, and no answer was sent.
inline constexpr std::string_view forward_computed = "experts.forward_computed";
/// The expert has made a step, and no trainer knows.
inline constexpr std::string_view step_made = "experts.step_made";
inline constexpr std::string_view answer_sent = "experts.answer_sent";
/// The server has sent copies of its experts.
inline constexpr std::string_view copies_sent = "experts.copies_sent";
/// The server has decided to revive an expert, and nobody knows.
inline constexpr std::string_view revived = "experts.revived";

inline constexpr std::array<std::string_view, 6> all{pass_received, forward_computed, step_made,
                                                     answer_sent,   copies_sent,      revived};

} // namespace shoal::actors::expert_probes
