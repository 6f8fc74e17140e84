#include "kernels/learn/dalle.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/torch_loader.hpp"

#include <algorithm>

namespace shoal::learn {

dalle::dalle(const dalle_config& config, bool reversible)
    : config_(config), layout_(dalle_layout(config)),
      math_(make_dalle_math({config, reversible, layout_})) {}

/// Calls use(batch) for each chunk of the samples.
template <class Use>
void dalle::by_chunks(std::span<const std::byte> samples, Use use) const {
  SHOAL_CHECK(check_samples(samples).ok(), "samples of other hosts are checked before use");
  const auto most = chunk * sample_bytes();
  for (std::size_t at = 0; at < samples.size(); at += most)
    use(format().batch(samples.subspan(at, std::min(most, samples.size() - at))));
}

double dalle::accumulate_gradient(std::span<const float> parameters,
                                  std::span<const std::byte> samples, std::size_t count,
                                  std::span<float> gradient_sum) const {
  SHOAL_CHECK(parameters.size() == parameter_count() && gradient_sum.size() == parameter_count() &&
                  samples.size() == count * sample_bytes(),
              "parameters, gradient and samples have the model's size");
  double total = 0;
  by_chunks(samples, [&](const dalle_batch& batch) {
    for (const auto& loss : math_->accumulate_gradient(parameters, batch, gradient_sum))
      total += loss.total();
  });
  return total;
}

std::vector<dalle_loss> dalle::losses(std::span<const float> parameters,
                                      std::span<const std::byte> samples) const {
  SHOAL_CHECK(parameters.size() == parameter_count(), "parameters have the model's size");
  std::vector<dalle_loss> out;
  by_chunks(samples, [&](const dalle_batch& batch) {
    const auto some = math_->losses(parameters, batch);
    out.insert(out.end(), some.begin(), some.end());
  });
  return out;
}

double dalle::mean_loss(std::span<const float> parameters, std::span<const std::byte> samples,
                        std::size_t count) const {
  double total = 0;
  for (const auto& loss : losses(parameters, samples)) total += loss.total();
  return count == 0 ? 0 : total / static_cast<double>(count);
}

std::vector<std::vector<token_id>> dalle::draw(std::span<const float> parameters,
                                               std::span<const token_id> caption, std::size_t count,
                                               const sampling_options& options,
                                               std::uint64_t seed) const {
  SHOAL_CHECK(parameters.size() == parameter_count() &&
                  caption.size() == static_cast<std::size_t>(config_.text_length),
              "parameters and caption have the model's size");
  std::vector<std::vector<token_id>> out(count);
  const auto length = static_cast<std::size_t>(config_.image_length()),
             codes = static_cast<std::size_t>(config_.codes);
  for (std::size_t first = 0; first < count; first += chunk) {
    const auto some = std::min(chunk, count - first);
    dalle_batch captions{static_cast<std::int64_t>(some), {}, {}};
    std::vector<rng> random;
    for (std::size_t i = 0; i < some; ++i) {
      captions.text.insert(captions.text.end(), caption.begin(), caption.end());
      random.push_back(stream(seed, "dalle_picture", first + i));
    }
    const auto decoder = math_->decode(parameters, captions);
    std::vector<token_id> chosen(some);
    for (std::size_t at = 0; at < length; ++at) {
      for (std::size_t i = 0; i < some; ++i) {
        chosen[i] = static_cast<token_id>(
            choose(std::span(decoder->logits()).subspan(i * codes, codes), options, random[i]));
        out[first + i].push_back(chosen[i]);
      }
      if (at + 1 < length) decoder->add(chosen);
    }
  }
  return out;
}

} // namespace shoal::learn
