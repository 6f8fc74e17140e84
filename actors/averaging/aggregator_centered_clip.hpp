// CenteredClip (kernels/robust/centered_clip.hpp), chunk by chunk and weighted by samples. The
// radius of a chunk of c values, of a round of d, and of a contribution of b samples is
//   radius sqrt(c / d) sqrt(batch / b)
// so that the radii of all chunks together are `radius`, and a mean of more samples has less room.
#pragma once

#include "actors/averaging/aggregator.hpp"

namespace shoal::actors {

aggregator_definition centered_clip_definition();

} // namespace shoal::actors
