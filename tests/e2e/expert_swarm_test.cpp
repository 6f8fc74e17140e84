// scenarios/experts/expert_swarm: whole runs over the emulated network, with the real DHT.
#include "kernels/base/stats.hpp"
#include "scenarios/experts/expert_report.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;

namespace {

experts_options small() {
  experts_options out;
  out.hosts = 10;
  out.trainers = 3;
  out.steps = 60;
  out.width = 8;
  out.learning_rate = 5e-3;
  out.copy_every = 8s;
  out.timeout = 2s;
  out.share_every = 3s;
  return out;
}

double mean_loss(std::span<const expert_figures::step> steps) {
  double sum = 0;
  for (const auto& each : steps) sum += each.loss;
  return sum / static_cast<double>(steps.size());
}

} // namespace

TEST_CASE("trainers learn with experts that they find in the DHT and equal seeds give equal runs") {
  const auto swarm = swarm_of(small(), 5, expert_data_of(small(), 5).value());
  const auto a = run_expert_swarm(swarm), b = run_expert_swarm(swarm);
  REQUIRE(a);
  REQUIRE(b);
  REQUIRE(a->steps.size() == 180);
  CHECK(mean_loss(std::span(a->steps).last(20)) < 0.9 * mean_loss(std::span(a->steps).first(20)));
  CHECK(a->calls_lost == 0);
  CHECK(a->rows_unanswered == 0);
  CHECK(a->mean_staleness() > 0);
  CHECK(a->misbehaved + a->bypassed == 0);
  for (std::size_t i = 0; i < a->steps.size(); ++i) {
    REQUIRE(a->steps[i].loss == b->steps[i].loss);
    REQUIRE(a->steps[i].when == b->steps[i].when);
  }
  CHECK(a->bytes == b->bytes);
}

TEST_CASE("a fifth of the hosts dies at once and every step finds experts for all rows") {
  auto options = small();
  options.steps = 250;
  options.lose_share = 0.2;
  options.lose_at = 3s;
  options.downtime = 20s;
  const auto figures = run_expert_swarm(swarm_of(options, 7, expert_data_of(options, 7).value()));
  REQUIRE(figures);
  CHECK(figures->deaths == 2);
  CHECK(figures->steps.size() == 750);
  CHECK(figures->calls_lost > 0);
  CHECK(figures->rows_unanswered == 0);
  CHECK(figures->experts_orphaned > 0);
  CHECK(figures->experts_revived == figures->experts_orphaned);
  CHECK(figures->experts_missing == 0);
  // The death is seen after 5 seconds, and an offer takes 2.
  REQUIRE_FALSE(figures->recovery_seconds.empty());
  CHECK(quantile(figures->recovery_seconds, 1) < 12);
  CHECK(figures->misbehaved + figures->bypassed == 0);
}

TEST_CASE("trainers wait while no expert is there") {
  auto options = small();
  options.layers = 1;
  options.grid = {2, 1};
  options.chosen = 2;
  options.hosts = 2;
  options.lose_share = 1;
  options.lose_at = 2s;
  options.downtime = 1s;
  options.stop_time = 40s;
  options.steps = 0;
  const auto figures = run_expert_swarm(swarm_of(options, 7, expert_data_of(options, 7).value()));
  REQUIRE(figures);
  CHECK(figures->deaths == 2);
  // Both copies died with the hosts, so no expert comes back. Each trainer is in its last step.
  CHECK(figures->experts_missing == 2);
  CHECK(figures->rows_unanswered == 0);
  CHECK(figures->steps.back().when < 10s);
}

TEST_CASE("experts of tokens learn a text, and large measurements find all experts") {
  auto options = small();
  options.text = {"/usr/share/common-licenses/GPL-3"};
  options.width = 16;
  options.heads = 2;
  options.layers = 1;
  options.chosen = 2;
  options.batch = 4;
  options.evaluate_every = 30;
  const auto data = expert_data_of(options, 5);
  REQUIRE(data);
  // Some experts get more rows than one request may have.
  REQUIRE(data->held_out.size() > 100 * 33);
  const auto figures = run_expert_swarm(swarm_of(options, 5, *data));
  REQUIRE(figures);
  CHECK(figures->rows_unanswered == 0);
  CHECK(figures->calls_lost == 0);
  REQUIRE(figures->evaluations.size() == 2);
  CHECK(figures->evaluations[0].loss == doctest::Approx(std::log(256)).epsilon(0.1));
  CHECK(figures->evaluations[1].loss < 4.2);
}

TEST_CASE("in a run of sizes alone requests have the bytes of their width") {
  auto options = small();
  options.steps = 5;
  options.timing = true;
  options.copies = 0;
  options.share_every = 1h;
  const auto bytes = [&](std::uint64_t width) {
    options.timing_width = width;
    const auto figures = run_expert_swarm(swarm_of(options, 7, expert_data_of(options, 7).value()));
    REQUIRE(figures);
    REQUIRE(figures->steps.size() == 15);
    return static_cast<double>(figures->bytes);
  };
  // 8 * 15 rows of 4 bytes a value go to 4 experts in 2 layers. The forward pass sends a row each
  // way. The backward pass sends two rows there and one back. The run with wide rows also takes
  // longer, with more records.
  const double difference = bytes(3000) - bytes(1000);
  CHECK(difference == doctest::Approx(8 * 15 * 4 * 2 * (2 + 3) * 4.0 * 2000).epsilon(0.05));
}
