// The geometric median of the contributions to a part (kernels/robust/geometric_median.hpp),
// weighted by samples. Parts of one round may have different nearest members, because each reducer
// sees its part alone.
#pragma once

#include "actors/averaging/aggregator.hpp"

namespace shoal::actors {

aggregator_definition geometric_median_definition();

} // namespace shoal::actors
