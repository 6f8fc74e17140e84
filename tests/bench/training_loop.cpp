// The model of a scenario, trained by a plain loop on one thread without peers and network. It is
// the reference for a swarm's samples per second.
// Usage: training_loop LAYERS HEADS DIM CONTEXT MICRO_BATCH TARGET_BATCH STEPS
#include "kernels/base/check.hpp"
#include "kernels/learn/baseline.hpp"
#include "kernels/learn/transformer.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace shoal;
using namespace shoal::learn;

int main(int argc, char** argv) {
  if (argc != 8) return std::fputs("seven numbers, see the file\n", stderr), 2;
  auto number = [&](int i) { return std::strtoll(argv[i], nullptr, 10); };
  kernels::transformer_config config{};
  config.layers = static_cast<decltype(config.layers)>(number(1));
  config.heads = static_cast<decltype(config.heads)>(number(2));
  config.dim = static_cast<decltype(config.dim)>(number(3));
  config.context = static_cast<decltype(config.context)>(number(4));
  const transformer model(config);
  const auto initial = model.initial_parameters(1);
  auto sample = [](std::uint64_t index, std::span<std::byte> out) {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<std::byte>('a' + (index + i) % 26);
  };
  baseline_options options{.target_batch = static_cast<std::size_t>(number(6)),
                           .micro_batch = static_cast<std::size_t>(number(5)),
                           .steps = number(7),
                           .lanes = 1,
                           .threads = 1};
  kernels::optimizer_config optimizer{.learning_rate = 0.003, .beta2 = 0.95};
  auto start = std::clock();
  auto result = train_baseline(model, optimizer, initial, sample, {}, options);
  auto seconds = static_cast<double>(std::clock() - start) /
                 CLOCKS_PER_SEC; // one thread: other programs do not count
  SHOAL_CHECK(std::isfinite(result.losses.back()) && result.losses.back() < result.losses.front(),
              "it learns");
  std::printf("rate=%.1f samples=%lld seconds=%.2f\n",
              static_cast<double>(number(6) * number(7)) / seconds, number(6) * number(7), seconds);
}
