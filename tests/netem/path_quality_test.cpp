#include "netem/path_quality.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace shoal;
using namespace shoal::netem;
using namespace std::chrono_literals;

namespace {

struct moments {
  double mean = 0, deviation = 0, least = 0, most = 0;
};

moments of(const path_quality& path, int n, path_memory* memory = nullptr) {
  auto draws = stream(7, "test");
  double sum = 0, squares = 0, least = 1e9, most = -1e9;
  for (int i = 0; i < n; ++i) {
    const double ms = to_seconds(draw_delay(path, draws, memory)) * 1e3;
    sum += ms;
    squares += ms * ms;
    least = std::min(least, ms);
    most = std::max(most, ms);
  }
  const double mean = sum / n;
  return {mean, std::sqrt(squares / n - mean * mean), least, most};
}

path_quality shaken(jitter_shape shape, double correlation = 0) {
  path_quality q;
  q.delay = 100ms;
  q.jitter = 10ms;
  q.shape = shape;
  q.correlation = correlation;
  return q;
}

} // namespace

TEST_CASE("each jitter has its mean and its width and its shape") {
  const auto uniform = of(shaken(jitter_shape::uniform), 200'000);
  CHECK(uniform.mean == doctest::Approx(100).epsilon(0.002));
  CHECK(uniform.deviation == doctest::Approx(10 / std::sqrt(3)).epsilon(0.01));
  CHECK(uniform.least >= 90);
  CHECK(uniform.most <= 110);
  const auto normal = of(shaken(jitter_shape::normal), 200'000);
  CHECK(normal.mean == doctest::Approx(100).epsilon(0.002));
  CHECK(normal.deviation == doctest::Approx(10).epsilon(0.01));
  // Pareto of shape 3, cut at 4 deviations, has no delay far below the mean and a long tail above.
  const auto pareto = of(shaken(jitter_shape::pareto), 200'000);
  CHECK(pareto.least == doctest::Approx(100 - 10 * 0.5 / 0.8660254).epsilon(0.001));
  CHECK(pareto.most == doctest::Approx(140).epsilon(0.001));
  CHECK(pareto.deviation < 10);
  const auto mixed = of(shaken(jitter_shape::paretonormal), 200'000);
  CHECK(mixed.least < pareto.least);
  CHECK(mixed.most > 120);
}

TEST_CASE("correlation keeps the distribution and makes neighbours alike") {
  for (const auto shape : {jitter_shape::uniform, jitter_shape::normal, jitter_shape::pareto}) {
    path_memory memory;
    const auto alone = of(shaken(shape), 200'000),
               together = of(shaken(shape, 0.8), 200'000, &memory);
    CHECK(together.mean == doctest::Approx(alone.mean).epsilon(0.01));
    CHECK(together.deviation == doctest::Approx(alone.deviation).epsilon(0.05));
  }
  auto draws = stream(8, "test");
  path_memory memory;
  const auto path = shaken(jitter_shape::normal, 0.8);
  double last = 0, product = 0, squares = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double x = to_seconds(draw_delay(path, draws, &memory)) * 1e3 - 100;
    product += x * last;
    squares += x * x;
    last = x;
  }
  CHECK(product / squares == doctest::Approx(0.8).epsilon(0.02));
}

TEST_CASE("a delay is never negative") {
  auto path = shaken(jitter_shape::normal);
  path.delay = 1ms;
  CHECK(of(path, 10'000).least == 0);
}

TEST_CASE("losses come as often as their model says, alone or in bursts") {
  const auto measured = [](const loss_model& loss, std::uint64_t packets) {
    auto draws = stream(9, "test");
    path_memory memory;
    int first = 0;
    const int n = 200'000;
    for (int i = 0; i < n; ++i)
      first += draw_retransmissions(loss, packets, draws, &memory) > 0 ? 1 : 0;
    return static_cast<double>(first) / n;
  };
  loss_model alone;
  alone.rate = 0.05;
  CHECK(measured(alone, 1) == doctest::Approx(0.05).epsilon(0.03));
  CHECK(measured(alone, 3) == doctest::Approx(1 - std::pow(0.95, 3)).epsilon(0.03));
  // p / (p + r) of the packets are in the bad state. A burst has 1 / r packets on average, and is
  // one loss event.
  loss_model bursts;
  bursts.p = 0.01;
  bursts.r = 0.25;
  CHECK(bursts.mean() == doctest::Approx(0.01 / 0.26));
  CHECK(bursts.event_rate() == doctest::Approx(0.01 * 0.25 / 0.26));
  CHECK(measured(bursts, 1) == doctest::Approx(bursts.mean()).epsilon(0.05));
  CHECK(loss_model{}.any() == false);
}

TEST_CASE("a burst does not outlast a timeout: a message that it lost gets through as usual") {
  loss_model bursts;
  bursts.p = 0.01;
  bursts.r = 0.05;
  auto draws = stream(9, "test");
  int lost = 0, lost_twice = 0;
  for (int i = 0; i < 100'000; ++i) {
    path_memory memory;
    memory.bad = true;
    const auto again = draw_retransmissions(bursts, 1, draws, &memory);
    lost += again > 0 ? 1 : 0;
    lost_twice += again > 1 ? 1 : 0;
  }
  CHECK(lost == doctest::Approx(95'000).epsilon(0.01));
  CHECK(static_cast<double>(lost_twice) / lost == doctest::Approx(bursts.mean()).epsilon(0.05));
}

TEST_CASE("the distance of coordinates is that in the plane plus both heights") {
  CHECK(distance({0.03, 0, 0.005}, {0, 0.04, 0.002}) == 57ms);
  CHECK(distance({0.01, 0.01, 0.001}, {0.01, 0.01, 0.001}) == 2ms);
}
