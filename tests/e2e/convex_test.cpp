// The workloads 'quadratic' and 'logistic'. The streamed samples are the drawn ones, a gradient
// needs nothing else, and a swarm ends where one machine does.
#include "actors/training/observations.hpp"
#include "kernels/convex_logistic.hpp"
#include "kernels/convex_quadratic.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

using namespace shoal;
using namespace shoal::e2e;

namespace {

std::string scenario(const std::string& workload, const std::string& training) {
  return "seed: 3\n"
         "stop_time: 30min\n"
         "devices: {slow: {samples_per_second: 20, jitter: 10%}, fast: {samples_per_second: 60, "
         "jitter: 10%}}\n"
         "peers:\n"
         "  s: {count: 2, up: 5Mbit, down: 20Mbit, device: slow}\n"
         "  f: {count: 2, up: 10Mbit, down: 20Mbit, device: fast}\n"
         "workload: " +
         workload +
         "\n"
         "training: " +
         training +
         "\n"
         "record: {events: none}\n";
}

scenarios::scenario loaded(const std::string& yaml) {
  auto out = scenarios::load_text(yaml, "convex.yaml");
  for (const auto& error : out.errors) FAIL(scenarios::render(error));
  return *out.value;
}

scenarios::run_outcome run_with_baseline(const std::string& yaml,
                                         scenarios::runner_options options = {}) {
  options.threads = 1;
  auto runner = scenarios::runner::prepare(loaded(yaml), std::move(options));
  REQUIRE(runner);
  auto outcome = (*runner)->run();
  REQUIRE(outcome);
  CHECK(outcome->summary.violations() == 0);
  return *outcome;
}

std::vector<std::byte> streamed(const scenarios::prepared_workload& from, std::uint64_t first,
                                std::uint64_t count) {
  const auto size = from.source()->sample_bytes();
  std::vector<std::byte> out(count * size);
  for (std::uint64_t i = 0; i < count; ++i)
    from.source()->read(first + i, std::span(out).subspan(i * size, size));
  return out;
}

void check_streaming(const std::string& workload, const kernels::convex_problem& problem) {
  auto prepared = scenarios::prepare_workload(loaded(scenario(workload, "{target_batch: 8}")));
  REQUIRE(prepared);
  const auto& work = *(*prepared)->work();
  const auto n = problem.parameters();
  CHECK(work.value_count() == n);
  CHECK(work.sample_bytes() == 4 * n);
  CHECK((*prepared)->source()->sample_bytes() == 4 * n);
  const auto bytes = streamed(**prepared, 11, 3);
  std::vector<float> drawn(n), sent(n), x(n);
  std::vector<double> expected(n), gradient(n);
  problem.initial(x);
  double loss = 0;
  for (std::uint64_t i = 0; i < 3; ++i) {
    problem.sample(11 + i, drawn);
    std::memcpy(sent.data(), bytes.data() + i * 4 * n, 4 * n);
    CHECK(sent == drawn);
    loss += problem.accumulate(x, drawn, expected);
  }
  const auto start = work.initial();
  CHECK(work.accumulate(start, bytes, 3, gradient) == loss);
  CHECK(gradient == expected);
  CHECK((*prepared)->held_out_loss(start) == problem.held_out_loss(x));
}

} // namespace

TEST_CASE("convex: what is streamed is what was drawn, and all that a gradient needs") {
  check_streaming("{kind: quadratic, parameters: 33, condition: 10}",
                  kernels::convex_quadratic(33, 10, 3));
  check_streaming("{kind: logistic, parameters: 17, condition: 5, l2: 0.01}",
                  kernels::convex_logistic(17, 5, 0.01, 3));
}

TEST_CASE(
    "convex: the optimizer of the scenario takes the steps, and its state travels with the model") {
  const auto state_values = [](const std::string& optimizer) {
    auto prepared = scenarios::prepare_workload(
        loaded(scenario("{kind: logistic, parameters: 5}", "{optimizer: " + optimizer + "}")));
    REQUIRE(prepared);
    const auto& work = *(*prepared)->work();
    const payload gradient{std::vector<float>{3, 0, 0, 0, 4}}; // the norm is 5
    const auto one = work.step(work.initial(), gradient), two = work.step(one, gradient);
    CHECK(two.step == 2);
    CHECK(two.optimizer.size() == one.optimizer.size());
    return std::pair(two.optimizer.size() / 4, two.parameters.floats()[0]);
  };
  CHECK(state_values("{kind: sgd, learning_rate: 0.5}") == std::pair<std::size_t, float>(0, -3.0f));
  CHECK(state_values("{kind: sgd, learning_rate: 0.5, momentum: 0.5}") ==
        std::pair<std::size_t, float>(5, -3.75f));
  CHECK(state_values("{kind: sgd, learning_rate: 0.5, clip_norm: 2.5}") ==
        std::pair<std::size_t, float>(0, -1.5f));
  CHECK(state_values("{kind: sgd, learning_rate: 0.5, warmup_steps: 4}").second ==
        doctest::Approx(-3 * (0.125 + 0.25)));
  CHECK(state_values("{kind: sgd, learning_rate: 0.5, weight_decay: 1}").second ==
        doctest::Approx(-1.5 - (1.5 - 0.75)));
  CHECK(state_values("{kind: adamw}").first == 10);
  CHECK(state_values("{kind: lamb}").first == 10);
  CHECK(state_values("{kind: adamw8}").first == 5); // two scales of 4 bytes and 10 codes, in fours
  CHECK(state_values("{kind: lamb8}").first == 5);
}

TEST_CASE("convex: four peers learn a logistic regression as well as one machine does") {
  for (const char* optimizer :
       {"{kind: sgd, learning_rate: 0.5, momentum: 0.9}", "{kind: adamw, learning_rate: 0.05}",
        "{kind: adamw8, learning_rate: 0.05}"}) {
    const auto outcome = run_with_baseline(
        scenario("{kind: logistic, parameters: 33, condition: 10}",
                 std::string("{target_batch: 128, epochs: 40, optimizer: ") + optimizer + "}"));
    const auto& loss = outcome.summary.loss;
    REQUIRE((loss.first && loss.final && loss.baseline));
    MESSAGE(std::string(optimizer) << ": " << *loss.first << " before, " << *loss.final
                                   << " after, " << *loss.baseline << " by one machine");
    CHECK(*loss.first == doctest::Approx(std::log(2)));
    CHECK(*loss.final < 0.7 * *loss.first);
    CHECK(std::abs(*loss.final - *loss.baseline) < 0.02);
    CHECK_FALSE(loss.bigram);
    CHECK(outcome.summary.epochs == 40);
  }
}

TEST_CASE(
    "convex: a late peer downloads moments in 8 bits as they are, in a quarter of the bytes") {
  const auto sent = [](const std::string& kind) {
    auto yaml = scenario("{kind: quadratic, parameters: 10000, condition: 3}",
                         "{target_batch: 128, epochs: 12, optimizer: {kind: " + kind +
                             ", learning_rate: 0.05}}");
    yaml.insert(yaml.find("workload:"),
                "  late: {count: 1, up: 10Mbit, down: 20Mbit, device: fast, start: 12s}\n");
    // The steps that it may have to catch up with are of parameters alone.
    std::vector<std::uint64_t> states;
    scenarios::runner_options options;
    options.on_observation = [&](const actors::host&, const actors::observation& seen) {
      if (const auto* over = actors::get_if<actors::download_ended>(&seen);
          over != nullptr && !over->step && over->reason == actors::reason::none)
        states.push_back(over->bytes);
    };
    const auto outcome = run_with_baseline(yaml, std::move(options));
    CHECK(outcome.summary.epochs == 12);
    CHECK(outcome.summary.peers.joined == 5);
    CHECK(*outcome.summary.loss.final < *outcome.summary.loss.first);
    REQUIRE(!states.empty());
    return static_cast<double>(states.front());
  };
  const double floats = sent("lamb"), bytes = sent("lamb8");
  MESSAGE(bytes << " bytes of state came, of " << floats);
  CHECK(floats == doctest::Approx(12 * 10000).epsilon(0.02)); // parameters and two moments
  CHECK(bytes / floats == doctest::Approx(6.0 / 12).epsilon(
                              0.02)); // parameters, and a quarter of that for each moment
}

TEST_CASE("convex: four peers descend a quadratic of condition 10 like one machine") {
  const auto outcome = run_with_baseline(
      scenario("{kind: quadratic, parameters: 64, condition: 10}",
               "{target_batch: 128, epochs: 40, optimizer: {kind: sgd, learning_rate: 0.5}}"));
  const auto& loss = outcome.summary.loss;
  REQUIRE((loss.first && loss.final && loss.baseline));
  MESSAGE(*loss.first << " before, " << *loss.final << " after, " << *loss.baseline
                      << " by one machine");
  CHECK(*loss.final < 0.02 * *loss.first);
  CHECK(*loss.final == doctest::Approx(*loss.baseline).epsilon(0.3));
}
