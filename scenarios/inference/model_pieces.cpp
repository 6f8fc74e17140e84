#include "scenarios/inference/model_pieces.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "scenarios/inference/inference_swarm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
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

duration measure_layer_time(const std::vector<std::shared_ptr<const learn::served_block>>& blocks) {
  constexpr std::size_t tokens = 8;
  const auto began = std::chrono::steady_clock::now();
  for (const auto& block : blocks) {
    auto cache = block->make_cache(1, tokens).value();
    std::vector<float> x(block->width(), 0.5F);
    for (std::size_t i = 0; i < tokens; ++i) {
      const learn::cached_step step[] = {{&cache, 1, x}};
      // A model that overflows here takes as long as another one.
      static_cast<void>(block->extend(step));
    }
  }
  const auto took = std::chrono::steady_clock::now() - began;
  return std::chrono::duration_cast<duration>(took) /
         static_cast<std::int64_t>(std::max<std::size_t>(blocks.size(), 1) * tokens);
}

std::string to_text(actors::layer_span layers) {
  return fmt::format("{}:{}", layers.first, layers.last);
}

std::vector<learn::token_id>
write_alone(const learn::served_model& model, const std::vector<learn::token_id>& prompt,
            std::uint32_t tokens, const learn::sampling_options& sampling, std::uint64_t seed,
            std::uint64_t request, learn::weight_format weights) {
  const auto& decoder = *model.model;
  const learn::layer_range all{0, decoder.layers()};
  const auto block =
      decoder.block(all, model.part(decoder.block_tensors(all).value()), weights).value();
  const auto ends =
      decoder.ends(model.part(decoder.embedding_tensors()), model.part(decoder.head_tensors()))
          .value();
  auto cache = block->make_cache(1, prompt.size() + tokens).value();
  auto random = stream(seed, "sampling", request);
  std::vector<learn::token_id> out;
  auto next = prompt;
  while (out.size() < tokens) {
    auto x = ends->embed(next, cache.length()).value();
    const learn::cached_step step[] = {{&cache, next.size(), x}};
    SHOAL_CHECK(block->extend(step).ok(), "the prompt fits");
    const auto logits =
        ends->logits(std::span(x).last(static_cast<std::size_t>(decoder.width()))).value();
    const auto token = static_cast<learn::token_id>(learn::choose(logits, sampling, random));
    if (model.stop == token) break;
    out.push_back(token);
    next = {token};
  }
  return out;
}

} // namespace shoal::scenarios
