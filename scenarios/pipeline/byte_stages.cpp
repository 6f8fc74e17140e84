#include "scenarios/pipeline/byte_stages.hpp"

#include "kernels/learn/decoder.hpp"
#include "kernels/learn/even_cut.hpp"
#include "kernels/learn/maxout_model.hpp"

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
cut_byte_transformer(const kernels::transformer_config& model, std::uint32_t stages,
                     const learn::maxout_config& maxout) {
  if (auto valid = kernels::validate(model); !valid) return failure{valid.error()};
  if (stages == 0 || stages > model.layers)
    return failure{fmt::format("{} stages: the model has only {} layers", stages, model.layers)};
  auto pieces = learn::with_bottlenecks(
      std::make_shared<const learn::decoder>(learn::decoder_of(model)), maxout);
  if (!pieces) return failure{pieces.error()};
  auto hops = learn::even_cut(model.layers, stages);
  for (const auto& hop : hops)
    if (!(*pieces)->block_tensors(hop))
      return failure{fmt::format(
          "{} stages: the layers {}:{} begin or end where the model has no bottleneck. Set "
          "workload.bottlenecks to {}",
          stages, hop.first, hop.last, stages)};
  const auto context = static_cast<std::size_t>(model.context);
  return actors::stage_model::make(
      std::move(*pieces), std::move(hops),
      [context](std::span<const std::byte> samples, std::uint64_t count) {
        return read_byte_samples(samples, count, context);
      });
}

} // namespace shoal::scenarios
