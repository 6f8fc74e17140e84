#include "kernels/learn/maxout_layout.hpp"

#include "kernels/base/rng.hpp"

#include <cmath>
#include <string>
#include <utility>

namespace shoal::learn {

result<void> validate(const maxout_config& maxout, std::int64_t width, std::int64_t layers) {
  if (maxout.pieces == 0 && maxout.group == 1) return {};
  const auto group = std::to_string(maxout.group), pieces = std::to_string(maxout.pieces);
  if (maxout.pieces < 1)
    return failure{"maxout " + group +
                   " needs bottlenecks: set 'bottlenecks' to the number of "
                   "pieces of the model"};
  if (maxout.group < 2)
    return failure{pieces + " bottlenecks need 'maxout', the number of channels of which the "
                            "largest passes: 2 or more"};
  if (width % maxout.group != 0)
    return failure{"maxout " + group + " does not divide the width " + std::to_string(width)};
  if (maxout.pieces > layers)
    return failure{pieces + " bottlenecks: the model has only " + std::to_string(layers) +
                   " layers, and each bottleneck stands behind one"};
  return {};
}

kernels::tensor_slot expand_tensor(const maxout_config& maxout, std::int64_t piece,
                                   std::int64_t width) {
  return {"bottleneck" + std::to_string(piece) + ".expand", 0, {width, width / maxout.group}};
}

std::vector<kernels::tensor_slot> layout_of(const kernels::transformer_config& model,
                                            const maxout_config& maxout) {
  auto out = kernels::layout_of(model);
  for (std::int64_t piece = 0; piece < maxout.pieces; ++piece) {
    auto slot = expand_tensor(maxout, piece, model.dim);
    slot.offset = kernels::end_of(out);
    out.push_back(std::move(slot));
  }
  return out;
}

std::vector<float> initial_parameters(const kernels::transformer_config& model,
                                      const maxout_config& maxout, std::uint64_t seed) {
  auto out = kernels::initial_parameters(model, seed);
  for (std::int64_t piece = 0; piece < maxout.pieces; ++piece) {
    const auto slot = expand_tensor(maxout, piece, model.dim);
    const double deviation = 1.0 / std::sqrt(static_cast<double>(slot.shape[1]));
    auto random = stream(seed, "initial_parameters.bottleneck", static_cast<std::uint64_t>(piece));
    for (std::size_t i = 0; i < slot.size(); ++i)
      out.push_back(static_cast<float>(random.normal(0.0, deviation)));
  }
  return out;
}

} // namespace shoal::learn
