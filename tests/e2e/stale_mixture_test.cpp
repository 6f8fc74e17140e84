// scenarios/experts/stale_mixture: the staleness of exponential delays, equal histories of equal
// seeds, and a mixture that learns under failures.
#include "kernels/base/rng.hpp"
#include "kernels/learn/image_ends.hpp"
#include "scenarios/experts/stale_mixture.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

/// Images of 16 bytes in three classes: a bright third, with noise.
std::vector<std::byte> images(std::uint64_t seed, std::size_t count) {
  auto random = stream(seed, "images");
  std::vector<std::byte> out;
  for (std::size_t n = 0; n < count; ++n) {
    const auto label = random.below(3);
    for (std::size_t i = 0; i < 16; ++i)
      out.push_back(std::byte(random.below(120) + (i % 3 == label ? 100 : 0)));
    out.push_back(std::byte(label));
  }
  return out;
}

stale_mixture small(std::uint32_t experts, double failure) {
  stale_mixture out;
  out.ends = learn::make_image_ends({.pixels = 16, .classes = 3, .width = 8});
  out.layers = 2;
  out.experts = experts;
  out.chosen = experts == 1 ? 1 : 2;
  out.failure = failure;
  out.updates = 2000;
  out.evaluate_every = 500;
  return out;
}

} // namespace

TEST_CASE("sixty-four trainers with exponential delays have a mean staleness of 63") {
  auto what = small(4, 0);
  what.batch = 1;
  what.updates = 12'800;
  what.evaluate_every = what.updates;
  const auto training = images(1, 30), held_out = images(2, 10);
  const auto figures = run_stale_mixture(what, training, held_out);
  CHECK(figures.counted == 12'160);
  // Each step makes 63 gradients older by one. So the mean is 63 but for the gradients that are
  // under way at both ends of the count: some 64 steps each, of 12,160.
  const auto edges =
      static_cast<double>(figures.age_before) - static_cast<double>(figures.age_after);
  CHECK(figures.mean_staleness * 12'160 == doctest::Approx(63 * 12'160 + edges).epsilon(1e-12));
  CHECK(figures.mean_staleness == doctest::Approx(63).epsilon(64.0 * 64 / 12'160 / 63));
  // The delays are exponential, so some gradients are far older.
  CHECK(figures.most_stale > 300);
}

TEST_CASE("one trainer alone is never stale, and its mixture learns although experts fail") {
  auto what = small(6, 0.3);
  what.trainers = 1;
  const auto training = images(1, 300), held_out = images(2, 100);
  const auto figures = run_stale_mixture(what, training, held_out);
  CHECK(figures.mean_staleness == 0);
  REQUIRE(figures.curve.size() == 5);
  CHECK(figures.curve.back().accuracy > 0.9);
  CHECK(figures.curve.back().loss < 0.5 * figures.curve.front().loss);
  CHECK(figures.expert_steps > 0);
}

TEST_CASE(
    "equal seeds give equal curves to the last bit, and a dense network has none of experts") {
  const auto training = images(1, 100), held_out = images(2, 50);
  for (const std::uint32_t experts : {1U, 5U}) {
    const auto a = run_stale_mixture(small(experts, 0.1), training, held_out),
               b = run_stale_mixture(small(experts, 0.1), training, held_out);
    REQUIRE(a.curve.size() == b.curve.size());
    for (std::size_t i = 0; i < a.curve.size(); ++i) CHECK(a.curve[i].loss == b.curve[i].loss);
    CHECK((a.expert_steps == 0) == (experts == 1));
  }
}
