// The coordinate-wise median (kernels/robust/coordinate_median.hpp), chunk by chunk. Weights do not
// count.
#pragma once

#include "actors/averaging/aggregator.hpp"

namespace shoal::actors {

aggregator_definition median_definition();

} // namespace shoal::actors
