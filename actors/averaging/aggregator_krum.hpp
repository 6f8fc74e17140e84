// Krum and multi-Krum of the contributions to a part (kernels/robust/krum.hpp). Each reducer sees
// its part alone, so reducers may choose different members.
#pragma once

#include "actors/averaging/aggregator.hpp"

namespace shoal::actors {

aggregator_definition krum_definition();
aggregator_definition multi_krum_definition();

} // namespace shoal::actors
