#include "scenarios/pipeline/albert_stages.hpp"

#include "kernels/learn/albert_blocks.hpp"
#include "kernels/learn/albert_sample.hpp"
#include "kernels/learn/even_cut.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace shoal::scenarios {

result<actors::piece_batch> read_albert_samples(std::span<const std::byte> samples,
                                                std::uint64_t count,
                                                const learn::albert_config& config) {
  const learn::albert_format format{config.vocabulary, config.positions};
  if (count == 0 || samples.size() != count * format.bytes())
    return failure{"pipeline: a message has samples of another size"};
  if (auto fine = format.check(samples); !fine) return failure{fine.error()};
  std::vector<learn::albert_sample> read;
  for (std::size_t at = 0; at < samples.size(); at += format.bytes())
    read.push_back(format.read(samples.subspan(at, format.bytes())));
  auto pieces = learn::albert_pieces_of(read, config.vocabulary, config.positions);
  return actors::piece_batch{pieces.shape, std::move(pieces.inputs), std::move(pieces.targets)};
}

result<std::shared_ptr<const actors::stage_model>>
cut_albert(const learn::albert_config& config, bool checkpoint, std::uint32_t parts) {
  if (auto valid = learn::validate(config); !valid) return failure{valid.error()};
  if (parts == 0 || parts > config.layers)
    return failure{
        fmt::format("{} stages: the model uses its layer only {} times", parts, config.layers)};
  auto blocks = learn::make_albert_blocks(config, checkpoint);
  if (!blocks) return failure{blocks.error()};
  auto hops = learn::even_cut(config.layers, parts);
  hops.insert(hops.begin(), {0, 0});
  return actors::stage_model::make(
      std::shared_ptr<const learn::layered_model>(std::move(*blocks)), std::move(hops),
      [config](std::span<const std::byte> samples, std::uint64_t count) {
        return read_albert_samples(samples, count, config);
      },
      learn::albert_decays);
}

} // namespace shoal::scenarios
