// The memory of a backward pass through DALL-E's reversible layers.
#include "kernels/base/rng.hpp"
#include "kernels/learn/dalle.hpp"
#include "tests/learn/support/memory_count.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

std::int64_t peak_of(std::int64_t layers, bool reversible) {
  const dalle_config config{.text_vocabulary = 64,
                            .text_length = 8,
                            .codes = 64,
                            .side = 8,
                            .dim = 64,
                            .heads = 4,
                            .layers = layers,
                            .groups = 0};
  const dalle model(config, reversible);
  const auto parameters = model.initial_parameters(1);
  const std::vector<std::byte> samples(8 * model.sample_bytes());
  std::vector<float> gradient(model.parameter_count());
  const auto count = std::make_shared<memory_count>();
  {
    const c10::DebugInfoGuard counted(c10::DebugInfoKind::PROFILER_STATE, count);
    model.accumulate_gradient(parameters, samples, 8, gradient);
  }
  CHECK(count->now() == 0);
  return count->peak();
}

} // namespace

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
