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

std::size_t dalle::drawn_at_once() const noexcept {
  constexpr std::int64_t most = 128, bytes = std::int64_t{256} << 20;
  // A layer keeps a key, a value and the inputs of its two halves for each position.
  const auto each = config_.layers * config_.positions() * config_.dim * 4 *
                    static_cast<std::int64_t>(sizeof(float));
  return static_cast<std::size_t>(std::clamp(bytes / each, std::int64_t{1}, most));
}

std::vector<std::vector<token_id>> dalle::draw(std::span<const float> parameters,
                                               std::span<const dalle_request> wanted,
                                               const sampling_options& options) const {
  SHOAL_CHECK(parameters.size() == parameter_count(), "parameters have the model's size");
  std::vector<std::vector<token_id>> out(wanted.size());
  const auto length = static_cast<std::size_t>(config_.image_length()),
             codes = static_cast<std::size_t>(config_.codes), most = drawn_at_once();
  for (std::size_t first = 0; first < wanted.size(); first += most) {
    const auto some = wanted.subspan(first, std::min(most, wanted.size() - first));
    dalle_batch captions;
    std::vector<std::int64_t> caption_of;
    std::vector<rng> random;
    for (std::size_t i = 0; i < some.size(); ++i) {
      SHOAL_CHECK(some[i].caption.size() == static_cast<std::size_t>(config_.text_length),
                  "a caption has the model's length");
      if (i == 0 || some[i].caption != some[i - 1].caption) {
        captions.text.insert(captions.text.end(), some[i].caption.begin(), some[i].caption.end());
        ++captions.samples;
      }
      caption_of.push_back(captions.samples - 1);
      random.push_back(stream(some[i].seed, "dalle_picture", some[i].number));
    }
    const auto decoder = math_->decode(parameters, captions, caption_of);
    std::vector<token_id> chosen(some.size());
    for (std::size_t at = 0; at < length; ++at) {
      for (std::size_t i = 0; i < some.size(); ++i) {
        chosen[i] = static_cast<token_id>(
            choose(std::span(decoder->logits()).subspan(i * codes, codes), options, random[i]));
        out[first + i].push_back(chosen[i]);
      }
      if (at + 1 < length) decoder->add(chosen);
    }
  }
  return out;
}

std::vector<std::vector<token_id>> dalle::draw(std::span<const float> parameters,
                                               std::span<const token_id> caption, std::size_t count,
                                               const sampling_options& options,
                                               std::uint64_t seed) const {
  std::vector<dalle_request> wanted;
  for (std::size_t i = 0; i < count; ++i)
    wanted.push_back({{caption.begin(), caption.end()}, seed, i});
  return draw(parameters, wanted, options);
}

} // namespace shoal::learn
