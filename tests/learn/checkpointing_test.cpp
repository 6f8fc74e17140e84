// kernels/learn/transformer with `checkpoint`: the same bits in less memory.
#include "kernels/base/rng.hpp"
#include "kernels/learn/transformer.hpp"
#include "kernels/memory_estimate.hpp"
#include "tests/learn/support/memory_count.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

struct outcome {
  double loss;
  std::vector<float> gradient;
  std::int64_t peak_bytes, kept_bytes;
};

outcome gradient_of(const kernels::transformer_config& config, bool checkpoint,
                    std::size_t samples) {
  const transformer model(config, checkpoint);
  auto parameters = model.initial_parameters(3);
  auto random = stream(4, "checkpointing");
  for (auto& value : parameters) value += static_cast<float>(0.05 * random.normal());
  std::vector<std::byte> tokens(samples * model.sample_bytes());
  for (auto& token : tokens) token = static_cast<std::byte>(random.below(256));
  outcome out{0, std::vector<float>(model.parameter_count(), 0.5F), 0, 0};
  const auto count = std::make_shared<memory_count>();
  {
    const c10::DebugInfoGuard counted(c10::DebugInfoKind::PROFILER_STATE, count);
    out.loss = model.accumulate_gradient(parameters, tokens, samples, out.gradient);
  }
  out.peak_bytes = count->peak();
  out.kept_bytes = count->now();
  return out;
}

} // namespace

TEST_CASE("with checkpoints the loss and the gradient have the same bits") {
  for (const auto& config :
       {kernels::transformer_config{.layers = 1, .heads = 1, .dim = 8, .context = 1},
        kernels::transformer_config{.layers = 3, .heads = 4, .dim = 32, .context = 24}})
    for (const std::size_t samples : {1, 5, 33}) {
      const auto whole = gradient_of(config, false, samples),
                 by_layer = gradient_of(config, true, samples);
      CHECK(by_layer.loss == whole.loss);
      CHECK(by_layer.gradient == whole.gradient);
    }
}

TEST_CASE("with checkpoints a deep model's gradient takes a fraction of the memory, and all of it "
          "is given back") {
  const kernels::transformer_config deep{.layers = 12, .heads = 4, .dim = 64, .context = 64};
  const auto whole = gradient_of(deep, false, 16), by_layer = gradient_of(deep, true, 16);
  MESSAGE("at most " << by_layer.peak_bytes << " bytes, without checkpoints " << whole.peak_bytes);
  CHECK(by_layer.peak_bytes < 0.35 * static_cast<double>(whole.peak_bytes));
  CHECK(by_layer.kept_bytes == 0);
  CHECK(by_layer.gradient == whole.gradient);
}

TEST_CASE("a backward pass holds the memory of the estimate, to 1 percent") {
  struct shape {
    kernels::transformer_config config;
    std::size_t samples;
  };
  // The peak is at the head, at scores, in the first layer, and at the end, where small batches
  // meet wide models.
  for (const auto& [config, samples] :
       {shape{{.layers = 8, .heads = 4, .dim = 128, .context = 64}, 8},
        shape{{.layers = 4, .heads = 8, .dim = 256, .context = 256}, 4},
        shape{{.layers = 6, .heads = 8, .dim = 256, .context = 64}, 8},
        shape{{.layers = 2, .heads = 8, .dim = 512, .context = 64}, 1}})
    for (const bool checkpoint : {false, true}) {
      CAPTURE(config.dim);
      CAPTURE(config.context);
      CAPTURE(checkpoint);
      kernels::memory_choices choices{.shape = {"ours", config.layers, config.heads, config.dim,
                                                4 * config.dim, config.context, config.vocabulary}};
      choices.precision = "f32";
      choices.checkpointing = checkpoint;
      choices.batch = static_cast<std::int64_t>(samples);
      const auto estimate = kernels::figure(
          kernels::estimate_memory(kernels::shoal_memory(), choices), "backward_pass");
      CHECK(estimate ==
            doctest::Approx(gradient_of(config, checkpoint, samples).peak_bytes).epsilon(0.01));
    }
}
