// Swarms whose members attack the numbers of training, with and without a robust aggregator: the
// whole way from the scenario to the trained model. And cells of the bench of learning under
// attack.
#include "scenarios/bench/robust.hpp"
#include "scenarios/runner/runner.hpp"
#include "scenarios/schema/load.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

scenario loaded(const std::string& averaging, const std::string& conduct,
                const std::string& method = "") {
  const auto text = fmt::format(
      "seed: 3\n"
      "stop_time: 30min\n"
      "devices: {{one: {{samples_per_second: 100}}}}\n"
      "peers:\n"
      "  honest: {{count: 7, up: 100Mbit, down: 100Mbit, device: one}}\n"
      "  others: {{count: 3, up: 100Mbit, down: 100Mbit, device: one, conduct: {}}}\n"
      "workload: {{kind: logistic, parameters: 41}}\n"
      "training: {{{}target_batch: 160, micro_batch: 16, epochs: 40, optimizer: {{kind: sgd, "
      "learning_rate: 1}}}}\n"
      "averaging: {}\n"
      "record: {{events: none}}\n",
      conduct, method, averaging);
  auto out = load_text(text, "robust.yaml");
  for (const auto& error : out.errors) FAIL(render(error));
  return *out.value;
}

summary run(const scenario& what) {
  runner_options options;
  options.threads = 1;
  auto runner = runner::prepare(what, std::move(options));
  REQUIRE(runner);
  auto outcome = (*runner)->run();
  REQUIRE(outcome);
  return outcome->summary;
}

} // namespace

TEST_CASE("a swarm under attack learns with robust aggregators and not with the mean") {
  const double honest = run(loaded("{split: equal}", "honest")).loss.final.value_or(NAN);
  CHECK(honest < 0.6);
  const std::string flip = "{kind: flipped_signs, strength: 20, from_epoch: 5}";
  const auto spoiled = run(loaded("{split: equal}", flip));
  CHECK(!(spoiled.loss.final.value_or(NAN) < 1));
  for (const char* aggregator :
       {"median", "{kind: trimmed_mean, faulty: 3}", "geometric_median",
        "{kind: multi_krum, faulty: 3}", "{kind: centered_clip, radius: 0.2, batch: 16}",
        "{kind: median, nearest_mixing: true, faulty: 3}"}) {
    CAPTURE(aggregator);
    const auto defended = run(loaded(fmt::format("{{aggregator: {}}}", aggregator), flip));
    CHECK(defended.violations() == 0);
    CHECK(defended.loss.final.value_or(NAN) < honest + 0.1);
  }
}

TEST_CASE("colluding attackers that know everybody reach the members of a swarm") {
  const auto mean = run(loaded(
      "{split: equal}", "{kind: inner_product_manipulation, strength: 5, knows: everybody}"));
  CHECK(!(mean.loss.final.value_or(NAN) < 0.69));
  CHECK(mean.violations() == 0);
  const auto labels = run(loaded("{aggregator: median}", "flipped_labels"));
  CHECK(labels.violations() == 0);
}

TEST_CASE("the bench of learning under attack agrees with what a swarm shows") {
  robust_bench what{loaded("{split: equal}", "honest"), 10, 5};
  const auto loss = [&](const std::string& attack, const std::string& defence) {
    const auto out = run_robust_cell(what, {attack, defence, 3, 3});
    REQUIRE(out);
    return out->loss;
  };
  const double honest = loss("none", "mean");
  CHECK(honest < 0.6);
  CHECK(!(loss("flipped_signs:20", "mean") < 1));
  CHECK(loss("flipped_signs:20", "centered_clip:radius=0.2") < honest + 0.1);
  CHECK(loss("flipped_signs:20", "median") < honest + 0.1);
  CHECK(loss("flipped_labels", "median") > honest);
  // The same cell again gives the same bits.
  CHECK(loss("little_is_enough", "krum") == loss("little_is_enough", "krum"));
}

TEST_CASE("the bench's btard bans attackers and ends near the run without them") {
  robust_bench what;
  what.from = loaded("{split: equal}", "honest");
  what.from.training.epochs = 80;
  const auto loss = [&](const char* attack, const char* defence, std::size_t attackers) {
    const auto out = run_robust_cell(what, {attack, defence, attackers, 3});
    REQUIRE_MESSAGE(out, (out ? "" : out.error()));
    return out->loss;
  };
  const auto honest = loss("none", "mean", 0);
  for (const char* attack : {"flipped_signs:10", "random_direction:100", "flipped_labels",
                             "inner_product_manipulation:0.6"}) {
    CAPTURE(attack);
    CHECK(loss(attack, "btard:radius=0.3", 3) < 1.02 * honest);
  }
  const auto wrong = run_robust_cell(what, {"none", "btard:validators=16", 3, 1});
  REQUIRE(!wrong);
  CHECK(wrong.error().find("fewer than honest members") != std::string::npos);
}

TEST_CASE("the bench says what is wrong with a cell") {
  robust_bench what{loaded("{split: equal}", "honest"), 10, 0};
  const auto error = [&](const std::string& attack, const std::string& defence,
                         std::size_t attackers = 3) {
    const auto out = run_robust_cell(what, {attack, defence, attackers, 1});
    return out ? std::string{} : out.error();
  };
  CHECK(error("fliped_signs", "mean") ==
        "unknown attack 'fliped_signs'; did you mean 'flipped_signs'?");
  CHECK(error("none", "medain") == "unknown defence 'medain'; did you mean 'median'?");
  CHECK(error("none", "centered_clip:radios=1") ==
        "'centered_clip' has no option 'radios'; did you mean 'radius'?");
  CHECK(error("none", "centered_clip:radius=0") == "'radius' of 'centered_clip' cannot be 0");
  CHECK(error("none", "mean", 10) == "10 attackers of 10 members leave nobody honest");
  CHECK(error("none", "median:x") ==
        "'median:x': expected NAME or NAME:OPTION=NUMBER+OPTION=NUMBER");
}
