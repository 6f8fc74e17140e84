// Why links and connections end, where other code reads the reason.
#pragma once

#include <string_view>

namespace shoal::netem::wire {

/// The other side said goodbye, or its process was replaced by a newer one.
inline constexpr std::string_view has_ended = "it has ended";
/// The machine refused the connection: no process listens at the address.
inline constexpr std::string_view nothing_listens = "nothing listens there yet";
inline constexpr std::string_view does_not_answer = "it does not answer";
inline constexpr std::string_view closed_by_other = "it closed the connection";

} // namespace shoal::netem::wire
