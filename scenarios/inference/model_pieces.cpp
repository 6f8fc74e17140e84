#include "scenarios/inference/model_pieces.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace shoal::scenarios {

model_pieces pieces_of(const learn::served_model& model, actors::layer_span layers,
                       learn::weight_format weights) {
  const auto& decoder = *model.model;
  model_pieces out;
  out.layers.resize(static_cast<std::size_t>(decoder.layers()));
  for (auto i = layers.first; i < layers.last; ++i) {
    const learn::layer_range one{static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1};
    out.layers[i] =
        decoder.block(one, model.part(decoder.block_tensors(one).value()), weights).value();
  }
  out.ends =
      decoder.ends(model.part(decoder.embedding_tensors()), model.part(decoder.head_tensors()))
          .value();
  return out;
}

std::string to_text(actors::layer_span layers) {
  return fmt::format("{}:{}", layers.first, layers.last);
}

} // namespace shoal::scenarios
