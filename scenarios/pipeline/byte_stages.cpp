#include "scenarios/pipeline/byte_stages.hpp"

#include "kernels/learn/decoder.hpp"

#include <fmt/format.h>

#include <utility>

namespace shoal::scenarios {

result<actors::piece_batch> read_byte_samples(std::span<const std::byte> samples,
                                              std::uint64_t count, std::size_t context) {
  if (samples.size() != count * (context + 1))
    return failure{"pipeline: a message has samples of another size"};
  actors::piece_batch out;
  out.shape = {static_cast<std::int64_t>(count), static_cast<std::int64_t>(context)};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto token = static_cast<learn::token_id>(samples[i]);
    if (i % (context + 1) != context) out.inputs.push_back(token);
    if (i % (context + 1) != 0) out.targets.push_back(token);
  }
  return out;
}

result<std::shared_ptr<const actors::stage_model>>
cut_byte_transformer(const kernels::transformer_config& model, std::uint32_t stages) {
  if (auto valid = kernels::validate(model); !valid) return failure{valid.error()};
  if (stages == 0 || stages > model.layers)
    return failure{fmt::format("{} stages: the model has only {} layers", stages, model.layers)};
  auto decoder = std::make_shared<const learn::decoder>(learn::decoder_of(model));
  const auto context = static_cast<std::size_t>(model.context);
  return actors::stage_model::make(
      std::move(decoder), actors::even_cut(model.layers, stages),
      [context](std::span<const std::byte> samples, std::uint64_t count) {
        return read_byte_samples(samples, count, context);
      });
}

} // namespace shoal::scenarios
