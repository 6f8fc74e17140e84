// The memory of a step of Shoal's own transformer: the peak of this process, less its memory after
// libtorch was loaded and had computed once. Each shape takes a fresh process, because a peak never
// falls.
// Usage: memory_peak LAYERS HEADS DIM CONTEXT SAMPLES CHECKPOINT OPTIMIZER
#include "kernels/base/check.hpp"
#include "kernels/learn/transformer.hpp"
#include "kernels/optimizer.hpp"

#include <sys/resource.h>
#include <unistd.h>

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

/// Two steps: the second has what the first left behind.
void train(const kernels::transformer_config& shape, bool checkpoint,
           const kernels::optimizer_config& optimizer, std::size_t samples) {
  const transformer model(shape, checkpoint);
  auto parameters = model.initial_parameters(1);
  std::vector<std::byte> state(state_bytes(optimizer, parameters.size()));
  std::vector<float> gradient(parameters.size());
  std::vector<std::byte> tokens(samples * model.sample_bytes());
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::byte>(i * 7 % 256);
  for (int i = 1; i <= 2; ++i) {
    gradient.assign(gradient.size(), 0.0F);
    SHOAL_CHECK(std::isfinite(model.accumulate_gradient(parameters, tokens, samples, gradient)),
                "a loss");
    step(optimizer, i, gradient, parameters, std::span(state), model.layout());
  }
}

} // namespace

int main(int argc, char** argv) {
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
  train({.layers = 1, .heads = 2, .dim = 32, .context = 32}, checkpoint, optimizer, 2);
  const auto before = peak_bytes();
  train(shape, checkpoint, optimizer, static_cast<std::size_t>(number(5)));
  std::printf("before=%lld peak=%lld\n", static_cast<long long>(before),
              static_cast<long long>(peak_bytes() - before));
}
