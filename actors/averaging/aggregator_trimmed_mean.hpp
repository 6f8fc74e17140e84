// The trimmed mean (kernels/robust/trimmed_mean.hpp), chunk by chunk. Weights do not count.
#pragma once

#include "actors/averaging/aggregator.hpp"

namespace shoal::actors {

aggregator_definition trimmed_mean_definition();

} // namespace shoal::actors
