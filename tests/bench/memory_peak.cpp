// The memory of a step of Shoal's own transformer, or of DALL-E. The figure is the peak of this
// process, less its memory after libtorch was loaded and had computed once. Each shape takes a
// fresh process, because a peak never falls. The duration of each step goes to stderr.
//
// Usage: memory_peak LAYERS HEADS DIM CONTEXT SAMPLES CHECKPOINT OPTIMIZER
//
// For DALL-E: memory_peak dalle VOCABULARY TEXT_LENGTH CODES SIDE DIM HEADS LAYERS GROUPS SAMPLES
// OPTIMIZER STEPS
#include "kernels/base/check.hpp"
#include "kernels/learn/dalle.hpp"
#include "kernels/learn/transformer.hpp"
#include "kernels/optimizer.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

std::int64_t peak_bytes() {
  rusage used{};
  SHOAL_CHECK(getrusage(RUSAGE_SELF, &used) == 0, "a process may ask for its own use");
  return std::int64_t{1024} * used.ru_maxrss;
}

/// Two steps at least: the second has what the first left behind.
void train(const model& model, const kernels::optimizer_config& optimizer, std::size_t samples,
           int steps = 2) {
  auto parameters = model.initial_parameters(1);
  std::vector<std::byte> state(state_bytes(optimizer, parameters.size()));
  std::vector<float> gradient(parameters.size());
  std::vector<std::byte> tokens(samples * model.sample_bytes());
  // Any bytes are text. A caption and a picture are those of token 0 and code 0.
  if (dynamic_cast<const transformer*>(&model) != nullptr)
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::byte>(i * 7 % 256);
  for (int i = 1; i <= steps; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    gradient.assign(gradient.size(), 0.0F);
    SHOAL_CHECK(std::isfinite(model.accumulate_gradient(parameters, tokens, samples, gradient)),
                "a loss");
    step(optimizer, i, gradient, parameters, std::span(state), model.layout());
    std::fprintf(stderr, "step %d: %.1f s\n", i,
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
}

int report(const model& warm, const model& measured, std::size_t samples,
           const kernels::optimizer_config& optimizer, int steps) {
  train(warm, optimizer, 2);
  const auto before = peak_bytes();
  train(measured, optimizer, samples, steps);
  std::printf("before=%lld peak=%lld\n", static_cast<long long>(before),
              static_cast<long long>(peak_bytes() - before));
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  if (argc == 13 && std::string_view(argv[1]) == "dalle") {
    auto number = [&](int i) { return std::strtoll(argv[i], nullptr, 10); };
    const dalle_config shape{number(2), number(3), number(4), number(5),
                             number(6), number(7), number(8), number(9)};
    const auto kind = kernels::parse_optimizer_kind(argv[11]);
    if (!kind || !validate(shape)) return std::fputs("no such shape or optimizer\n", stderr), 2;
    return report(dalle({8, 4, 8, 4, 32, 2, 2, 1}), dalle(shape),
                  static_cast<std::size_t>(number(10)), {.kind = *kind},
                  static_cast<int>(number(12)));
  }
  if (argc != 8) return std::fputs("seven arguments, see the file\n", stderr), 2;
  auto number = [&](int i) { return std::strtoll(argv[i], nullptr, 10); };
  kernels::transformer_config shape{
      .layers = number(1), .heads = number(2), .dim = number(3), .context = number(4)};
  const auto kind = kernels::parse_optimizer_kind(argv[7]);
  if (!kind || !kernels::validate(shape))
    return std::fputs("no such shape or optimizer\n", stderr), 2;
  const bool checkpoint = std::string_view(argv[6]) == "1";
  const kernels::optimizer_config optimizer{.kind = *kind};
  // Libraries, their buffers and their code.
  const transformer small({.layers = 1, .heads = 2, .dim = 32, .context = 32}, checkpoint);
  return report(small, transformer(shape, checkpoint), static_cast<std::size_t>(number(5)),
                optimizer, 2);
}
