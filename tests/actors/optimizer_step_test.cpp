// actors/training/optimizer_step: a peer's step is the kernel's step on copies, and the old state
// stays unchanged.
#include "actors/training/optimizer_step.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace shoal;
using namespace shoal::actors;

namespace {

std::vector<float> floats_of(const payload& what) {
  return {what.floats().begin(), what.floats().end()};
}

} // namespace

TEST_CASE("a fresh state has the parameters, and zeros of the optimizer's size") {
  for (const auto kind : {kernels::optimizer_kind::sgd, kernels::optimizer_kind::adamw,
                          kernels::optimizer_kind::lamb8}) {
    const kernels::optimizer_config optimizer{.kind = kind};
    const auto state = fresh_state(optimizer, {1, 2, 3});
    CHECK(state.epoch == 0);
    CHECK(state.step == 0);
    CHECK(floats_of(state.parameters) == std::vector<float>{1, 2, 3});
    CHECK(state.optimizer.size() == kernels::state_bytes(optimizer, 3));
    for (const auto byte : state.optimizer.bytes()) CHECK(byte == std::byte{0});
  }
}

TEST_CASE(
    "a step is the kernel's step with the next number, and leaves the state before it unchanged") {
  for (const auto kind : {kernels::optimizer_kind::sgd, kernels::optimizer_kind::adamw,
                          kernels::optimizer_kind::adamw8}) {
    const kernels::optimizer_config optimizer{
        .kind = kind, .learning_rate = 0.1, .warmup_steps = 4};
    const auto start = fresh_state(optimizer, {1, 2, 3});
    const payload gradient{std::vector<float>{0.5f, -1, 2}};
    const auto once = step_from(start, optimizer, gradient);
    const auto twice = step_from(once, optimizer, gradient);
    std::vector<float> parameters{1, 2, 3};
    std::vector<std::byte> state(kernels::state_bytes(optimizer, 3));
    for (std::int64_t number = 1; number <= 2; ++number)
      kernels::step(optimizer, number, gradient.floats(), parameters, std::span(state));
    CHECK(twice.step == 2);
    CHECK(floats_of(twice.parameters) == parameters);
    CHECK(std::vector<std::byte>(twice.optimizer.bytes().begin(), twice.optimizer.bytes().end()) ==
          state);
    CHECK(start.step == 0);
    CHECK(floats_of(start.parameters) == std::vector<float>{1, 2, 3});
  }
}
