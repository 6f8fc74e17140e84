// scenarios/pipeline: a swarm that learns text through a pipeline, beside one machine.
#include "scenarios/pipeline/pipeline_report.hpp"
#include "tests/e2e/support/sentences.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

std::string write_text(const scratch_folder& folder) {
  return folder.write("text.txt", e2e::sentences());
}

pipeline_options small(const std::string& text) {
  pipeline_options out;
  out.files = {text};
  out.dim = 8;
  out.context = 12;
  out.hosts = 8;
  out.batch = 12;
  out.micro_batch = 2;
  out.steps = 30;
  out.learning_rate = 0.02;
  out.matchmaking_time = std::chrono::seconds(2);
  return out;
}

struct run_of {
  program_outcome outcome;
  nlohmann::json summary;
};

run_of run(const pipeline_options& what, std::uint64_t seed = 1) {
  auto out = run_pipeline("test", what, seed, {});
  REQUIRE(out);
  return {*out, nlohmann::json::parse(out->summary)};
}

} // namespace

TEST_CASE("a pipeline without deaths has the loss of one machine") {
  const scratch_folder folder;
  auto what = small(write_text(folder));
  what.slowest = 3;
  const auto [outcome, s] = run(what);
  CHECK(outcome.errors.empty());
  CHECK(s["steps"] == 30);
  const double loss = s["held_out_loss"], alone = s["held_out_loss_of_one_machine"];
  CHECK(loss == doctest::Approx(alone).epsilon(1e-4));
  CHECK(loss < 0.6 * s["evaluations"][0]["held_out_loss"].get<double>());
  CHECK(s["samples_missing"] == 0);
  CHECK(s["samples_repeated"] == 0);
  CHECK(s["split_steps"] == 0);
  for (const auto& [why, count] : s["tasks_failed"].items()) CHECK_MESSAGE(count == 0, why);
  // Each micro-batch counts once in each hop, and the first stage has two hops.
  CHECK(s["gradients_counted"] == nlohmann::json({360, 180, 180, 180}));
  CHECK(s["samples_per_second"] < s["samples_per_second_bound"]);
}

TEST_CASE("hosts that come and go cost a pipeline no sample") {
  const scratch_folder folder;
  auto what = small(write_text(folder));
  what.hosts = 12;
  what.steps = 60;
  what.lifetime = std::chrono::minutes(2);
  what.downtime = std::chrono::seconds(10);
  const auto [outcome, s] = run(what);
  CHECK(outcome.errors.empty());
  CHECK(s["deaths"] > 5);
  CHECK(s["tasks_failed"]["peer_gone"] > 0);
  CHECK(s["batches_reopened"] > 0);
  CHECK(s["states_downloaded"] > 0);
  CHECK(s["samples_missing"] == 0);
  CHECK(s["samples_repeated"] == 0);
  const double loss = s["held_out_loss"], alone = s["held_out_loss_of_one_machine"];
  CHECK(loss == doctest::Approx(alone).epsilon(1e-3));
}

TEST_CASE("a run of a pipeline can be repeated to the last byte") {
  const scratch_folder folder;
  auto what = small(write_text(folder));
  what.steps = 5;
  what.lifetime = std::chrono::minutes(1);
  what.downtime = std::chrono::seconds(5);
  const auto once = run(what, 2).summary;
  CHECK(once["deaths"] > 0);
  CHECK(once == run(what, 2).summary);
}

TEST_CASE("a stage whose hosts are all gone ends the run with its number") {
  const scratch_folder folder;
  auto what = small(write_text(folder));
  what.stages = 2;
  what.hosts = 2;
  what.lifetime = std::chrono::seconds(60);
  const auto [outcome, s] = run(what);
  REQUIRE(outcome.errors.size() == 1);
  CHECK(outcome.errors[0].starts_with("all hosts of stage "));
  CHECK(s["held_out_loss_of_one_machine"].is_null());
}

TEST_CASE("text that cannot be read is an error with its name") {
  pipeline_options what;
  what.files = {"/no/such/text"};
  const auto out = run_pipeline("test", what, 1, {});
  REQUIRE_FALSE(out);
  CHECK(out.error().starts_with("pipeline.files: "));
  CHECK(out.error().find("/no/such/text") != std::string::npos);
}

TEST_CASE("sizes alone take as long as a model with numbers") {
  const scratch_folder folder;
  auto what = small(write_text(folder));
  what.steps = 4;
  what.slowest = 2;
  const auto learns = run(what).summary;
  what.timing = true;
  what.timing_width = what.dim;
  what.timing_parameters = 1000; // as a stage of the model
  const auto [outcome, sizes] = run(what);
  CHECK(outcome.errors.empty());
  CHECK(sizes["steps"] == 4);
  CHECK(sizes["held_out_loss"].is_null());
  CHECK(sizes["gradients_counted"] == learns["gradients_counted"]);
  CHECK(sizes["samples_missing"] == 0);
  const double seconds = sizes["virtual_seconds"], with_numbers = learns["virtual_seconds"];
  CHECK(seconds == doctest::Approx(with_numbers).epsilon(0.05));
}

TEST_CASE("without an end of steps a pipeline runs until its time is over") {
  auto what = pipeline_options{};
  what.timing = true;
  what.hosts = 8;
  what.steps = 0;
  what.stop_time = std::chrono::minutes(5);
  const auto [outcome, s] = run(what);
  CHECK(outcome.errors.empty());
  CHECK(s["virtual_seconds"] == 300);
  CHECK(s["steps"] > 10);
}
