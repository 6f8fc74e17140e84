// The classes of address translation that a host can be behind. netem/nat_rules.hpp says which
// classes reach which.
#pragma once

#include <cstdint>

namespace shoal::netem {

enum class nat_class : std::uint8_t { open, cone, symmetric, outbound_only };

} // namespace shoal::netem
