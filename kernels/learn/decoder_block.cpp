#include "kernels/learn/decoder_block.hpp"

#include "kernels/base/check.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace shoal::learn {

decoder_block::decoder_block(std::shared_ptr<const decoder_facts> facts, std::size_t layers,
                             std::span<const float> parameters, weight_format format)
    : f_(std::move(facts)) {
  const auto each = f_->sizes.parameters();
  for (std::size_t i = 0; i < layers; ++i)
    weights_.emplace_back(f_->sizes, parameters.subspan(i * each, each), format);
}

std::size_t decoder_block::weight_bytes() const noexcept {
  std::size_t out = 0;
  for (const auto& each : weights_) out += each.bytes();
  return out;
}

result<kv_cache> decoder_block::make_cache(std::size_t samples, std::size_t most) const {
  if (samples == 0 || most == 0 || most > context())
    return failure{"cache: " + std::to_string(samples) + " sequences of " + std::to_string(most) +
                   " tokens; a sequence has from 1 to " + std::to_string(context())};
  return kv_cache(layers(), samples, most, f_->sizes.kv);
}

result<void> decoder_block::check(const cached_step& step) const {
  const auto& cache = *step.cache;
  if (cache.layers() != layers() || cache.width() != f_->sizes.kv)
    return failure{"cache: it belongs to another block"};
  if (step.time == 0 || step.time > cache.most() - cache.length())
    return failure{"cache: " + std::to_string(step.time) + " tokens after " +
                   std::to_string(cache.length()) + " do not fit: it was reserved for " +
                   std::to_string(cache.most())};
  if (step.activations.size() != cache.samples() * step.time * width())
    return failure{"layers: the vector of activations has " +
                   std::to_string(step.activations.size()) + " values; it needs " +
                   std::to_string(cache.samples() * step.time * width())};
  if (!kernels::all_finite(step.activations))
    return failure{"layers: the activations have a value that is not finite"};
  return {};
}

result<void> decoder_block::extend(std::span<const cached_step> steps) const {
  std::vector<token_place> tokens;
  for (const auto& step : steps) {
    if (auto fits = check(step); !fits) return fits;
    for (std::size_t s = 0; s < step.cache->samples(); ++s)
      for (std::size_t t = 0; t < step.time; ++t)
        tokens.push_back({step.cache, s, step.cache->length() + t});
  }
  std::vector<float> x;
  x.reserve(tokens.size() * width());
  for (const auto& step : steps)
    x.insert(x.end(), step.activations.begin(), step.activations.end());
  for (const auto& step : steps)
    SHOAL_CHECK(step.cache->append(step.time).ok(), "each cache occurs once");
  for (std::size_t l = 0; l < weights_.size(); ++l)
    layer_forward(f_->sizes, f_->table, weights_[l], l, tokens, x.data());
  auto from = x.begin();
  for (const auto& step : steps) {
    std::copy_n(from, step.activations.size(), step.activations.begin());
    from += static_cast<std::ptrdiff_t>(step.activations.size());
  }
  return {};
}

template <class Before>
void decoder_block::run(pass_shape shape, std::vector<float>& x, Before before) const {
  const auto time = static_cast<std::size_t>(shape.time);
  for (const auto& weights : weights_) {
    before(x);
    kv_cache cache(1, static_cast<std::size_t>(shape.samples), time, f_->sizes.kv);
    std::vector<token_place> tokens;
    for (std::size_t r = 0; r < shape.tokens(); ++r) tokens.push_back({&cache, r / time, r % time});
    layer_forward(f_->sizes, f_->table, weights, 0, tokens, x.data());
  }
}

result<std::vector<float>> decoder_block::forward(pass_shape shape,
                                                  std::span<const float> in) const {
  if (const auto check = f_->pass(shape, in); !check.ok()) return check.why();
  std::vector<float> x(in.begin(), in.end());
  run(shape, x, [](const std::vector<float>&) {});
  return x;
}

result<std::vector<float>> decoder_block::backward(pass_shape shape, std::span<const float> in,
                                                   std::span<const float> gradient_out,
                                                   float* gradient_parameters) const {
  auto check = f_->pass(shape, in);
  if (check.ok()) check.size("gradient of the activations", gradient_out.size(), in.size());
  if (!check.ok()) return check.why();
  std::vector<std::vector<float>> entered;
  std::vector<float> x(in.begin(), in.end());
  run(shape, x, [&](const std::vector<float>& now) { entered.push_back(now); });
  std::vector<float> gradient(gradient_out.begin(), gradient_out.end());
  for (auto l = weights_.size(); l-- > 0;)
    layer_backward(f_->sizes, f_->table, weights_[l], shape, entered[l].data(), gradient.data(),
                   gradient_parameters == nullptr
                       ? nullptr
                       : gradient_parameters + l * f_->sizes.parameters());
  return gradient;
}

} // namespace shoal::learn
