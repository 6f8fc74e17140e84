// A model cut into its layers, as servers and clients of a swarm hold it.
#pragma once

#include "actors/inference/route.hpp"
#include "kernels/base/units.hpp"
#include "kernels/learn/model_file.hpp"
#include "kernels/learn/served_block.hpp"

#include <memory>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct model_pieces {
  std::vector<std::shared_ptr<const learn::served_block>> layers;
  std::shared_ptr<const learn::served_ends> ends;
};

/// The ends, and the blocks of these layers; other layers are null.
/// Requires: layers.last is at most the number of the model's layers.
model_pieces pieces_of(const learn::served_model& model, actors::layer_span layers,
                       learn::weight_format weights);

/// The mean time of one token through one layer, measured over a few tokens.
duration measure_layer_time(const std::vector<std::shared_ptr<const learn::served_block>>& blocks);

/// '0:2', for the first two layers.
std::string to_text(actors::layer_span layers);

} // namespace shoal::scenarios
