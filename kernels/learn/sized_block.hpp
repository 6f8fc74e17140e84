// A model of sizes alone, to predict the speed of a swarm. Its layers compute nothing, and a token
// has one float of activations, which is zero. Caches count tokens and hold no values. So the
// memory of a run does not depend on the model's size.
#pragma once

#include "kernels/learn/served_block.hpp"

#include <cstddef>
#include <memory>

namespace shoal::learn {

/// One layer of such a model. Requires: context > 0.
std::shared_ptr<const served_block> make_sized_layer(std::size_t context);

/// The ends of such a model, whose only token is 0. Requires: sizes that are not zero.
std::shared_ptr<const served_ends> make_sized_ends(std::size_t layers, std::size_t context);

} // namespace shoal::learn
