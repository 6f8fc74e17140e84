// The mean of the contributions weighted by their samples (kernels/reduce_weighted_mean.hpp), chunk
// by chunk. It equals the gradient of one large batch (Diskin et al., arXiv:2106.10207).
#pragma once

#include "actors/averaging/aggregator.hpp"

namespace shoal::actors {

/// verify(): for each value j, over the senders i,
///   |result[j] - sum_i w_i x_i[j] / sum_i w_i| <= relative * sum_i w_i |x_i[j]| / sum_i w_i
///       + (loss + mean_loss + loss mean_loss) * sum_i w_i max_k |x_i[k]| / sum_i w_i +
///       loss_of_small + mean_loss_of_small
/// with x_i[j] unchanged or clamped to +-largest.
aggregator_definition weighted_mean_definition();

} // namespace shoal::actors
