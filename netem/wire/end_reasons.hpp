// Why links end, where other code reads the reason.
#pragma once

#include <string_view>

namespace shoal::netem::wire {

/// The other side said goodbye, or its process was replaced by a newer one.
inline constexpr std::string_view has_ended = "it has ended";

} // namespace shoal::netem::wire
