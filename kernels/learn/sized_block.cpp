#include "kernels/learn/sized_block.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/argument_check.hpp"

#include <string>

namespace shoal::learn {

namespace {

class sized_layer final : public served_block {
public:
  explicit sized_layer(std::size_t context) : context_(context) {}

  std::size_t layers() const noexcept override { return 1; }
  std::size_t width() const noexcept override { return 1; }
  std::size_t context() const noexcept override { return context_; }
  std::size_t cache_floats() const noexcept override { return 0; }
  std::size_t weight_bytes() const noexcept override { return 0; }

  result<kv_cache> make_cache(std::size_t samples, std::size_t most) const override {
    if (samples == 0 || most == 0 || most > context_)
      return failure{"cache: " + std::to_string(samples) + " sequences of " + std::to_string(most) +
                     " tokens; a sequence has from 1 to " + std::to_string(context_)};
    return kv_cache(1, samples, most, 0);
  }
  result<void> extend(std::span<const cached_step> steps) const override {
    for (const auto& step : steps) {
      if (step.activations.size() != step.cache->samples() * step.time)
        return failure{"layers: the activations do not have one value for each token"};
      if (step.time > step.cache->most() - step.cache->length())
        return failure{"cache: the step does not fit"};
    }
    for (const auto& step : steps)
      SHOAL_CHECK(step.cache->append(step.time).ok(), "each cache occurs once");
    return {};
  }
  result<std::vector<float>> forward(pass_shape shape, std::span<const float> in) const override {
    if (in.size() != shape.tokens())
      return failure{"layers: the activations do not have one value for each token"};
    return std::vector<float>(in.begin(), in.end());
  }
  result<std::vector<float>> backward(pass_shape shape, std::span<const float>,
                                      std::span<const float> gradient_out) const override {
    return forward(shape, gradient_out);
  }

private:
  std::size_t context_;
};

class sized_ends final : public served_ends {
public:
  sized_ends(std::size_t layers, std::size_t context) : layers_(layers), context_(context) {}

  std::size_t vocabulary() const noexcept override { return 1; }
  std::size_t width() const noexcept override { return 1; }
  std::size_t context() const noexcept override { return context_; }
  std::size_t layers() const noexcept override { return layers_; }

  result<std::vector<float>> embed(std::span<const token_id> tokens, std::size_t) const override {
    if (const auto check = argument_check().tokens(tokens, 1); !check.ok()) return check.why();
    return std::vector<float>(tokens.size());
  }
  result<std::vector<float>> logits(std::span<const float> activations) const override {
    return std::vector<float>(activations.size());
  }

private:
  std::size_t layers_, context_;
};

} // namespace

std::shared_ptr<const served_block> make_sized_layer(std::size_t context) {
  SHOAL_CHECK(context > 0, "a model has a context");
  return std::make_shared<const sized_layer>(context);
}

std::shared_ptr<const served_ends> make_sized_ends(std::size_t layers, std::size_t context) {
  SHOAL_CHECK(layers > 0 && context > 0, "a model has layers and a context");
  return std::make_shared<const sized_ends>(layers, context);
}

} // namespace shoal::learn
