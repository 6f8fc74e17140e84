// The memory of a backward pass through DALL-E's reversible layers.
#include "kernels/base/rng.hpp"
#include "kernels/learn/dalle.hpp"
#include "kernels/memory_estimate.hpp"
#include "tests/learn/support/memory_count.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

std::int64_t peak_of(const dalle_config& config, std::size_t count_of_samples,
                     bool reversible = true) {
  const dalle model(config, reversible);
  const auto parameters = model.initial_parameters(1);
  const std::vector<std::byte> samples(count_of_samples * model.sample_bytes());
  std::vector<float> gradient(model.parameter_count());
  const auto count = std::make_shared<memory_count>();
  {
    const c10::DebugInfoGuard counted(c10::DebugInfoKind::PROFILER_STATE, count);
    model.accumulate_gradient(parameters, samples, count_of_samples, gradient);
  }
  CHECK(count->now() == 0);
  return count->peak();
}

std::int64_t peak_of(std::int64_t layers, bool reversible) {
  return peak_of({64, 8, 64, 8, 64, 4, layers, 0}, 8, reversible);
}

} // namespace

TEST_CASE("a backward pass of DALL-E holds the memory of the estimate, to 5 percent") {
  // The peak is at scores, at codes, at tokens, at the embedding, and in the feed-forward half with
  // few and with many tokens. The last model is that of scenarios/ttt/emoji.yaml.
  for (const auto& c :
       {dalle_config{16, 4, 8, 16, 64, 8, 4, 4}, dalle_config{16, 4, 8, 16, 64, 4, 4, 4},
        dalle_config{8, 4, 2000, 8, 16, 1, 4, 4}, dalle_config{2000, 64, 8, 3, 16, 1, 4, 4},
        dalle_config{2000, 32, 1000, 6, 256, 1, 4, 4}, dalle_config{16, 4, 8, 4, 128, 1, 4, 4},
        dalle_config{1000, 16, 512, 8, 128, 4, 9, 4}})
    for (const std::int64_t samples : {1, 8}) {
      CAPTURE(c.dim);
      CAPTURE(c.side);
      CAPTURE(samples);
      kernels::memory_choices choices;
      choices.shape = {"ours",        c.layers,        c.heads,       c.dim,  4 * c.dim,
                       c.positions(), c.text_tokens(), c.text_length, c.codes};
      choices.precision = "f32";
      choices.sharing = c.groups < c.layers ? c.groups : 0;
      choices.batch = samples;
      const auto figures = kernels::estimate_memory(kernels::dalle_memory(), choices);
      CHECK(kernels::figure(figures, "parameters") ==
            static_cast<double>(kernels::end_of(dalle_layout(c))));
      CHECK(kernels::figure(figures, "backward_pass") ==
            doctest::Approx(peak_of(c, static_cast<std::size_t>(samples))).epsilon(0.05));
    }
}

TEST_CASE("the memory of reversible layers does not grow with their number") {
  const auto four = peak_of(4, true), sixteen = peak_of(16, true), many = peak_of(64, true);
  const auto plain_four = peak_of(4, false), plain_sixteen = peak_of(16, false),
             plain_many = peak_of(64, false);
  MESSAGE("bytes with 4, 16 and 64 layers: " << four << " " << sixteen << " " << many
                                             << "; with plain autograd " << plain_four << " "
                                             << plain_sixteen << " " << plain_many);
  CHECK(sixteen == four);
  CHECK(many == four);
  CHECK(static_cast<double>(plain_many) > 10 * static_cast<double>(plain_four));
}
