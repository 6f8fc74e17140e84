#include "scenarios/plan/method_plan.hpp"
#include "scenarios/schema/load.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace shoal;
using scenarios::method_plan;
using scenarios::plan_row;

namespace {

method_plan planned(const std::string& file, std::vector<std::string> sets = {}) {
  const auto loaded = scenarios::load(file, sets);
  REQUIRE(loaded.value);
  auto out = scenarios::plan_methods(*loaded.value, file, sets, 0);
  REQUIRE(out);
  return *out;
}

const plan_row& row_of(const method_plan& plan, const std::string& method,
                       const std::string& variant) {
  const auto found = std::find_if(plan.rows.begin(), plan.rows.end(), [&](const auto& row) {
    return row.method == method && row.variant == variant;
  });
  REQUIRE(found != plan.rows.end());
  return *found;
}

/// Runs the fastest variant of each method, for two steps after the first one. The predictions are
/// near the measurements, and the row that should be the fastest is the fastest.
void check_by_running(method_plan plan) {
  std::set<std::string> seen;
  std::erase_if(plan.rows, [&](const auto& row) {
    return !row.impossible.empty() || !seen.insert(row.method).second;
  });
  REQUIRE(!plan.rows.empty());
  scenarios::plan_run_options options;
  options.epochs = 2;
  REQUIRE(scenarios::run_plan(plan, options));
  INFO(scenarios::table(plan));
  for (const auto& row : plan.rows) {
    CAPTURE(row.method);
    REQUIRE(row.measured);
    CHECK(row.predicted.samples_per_second / *row.measured < 1.3);
    CHECK(*row.measured / row.predicted.samples_per_second < 1.3);
    // Rows that are nearly as fast may change places.
    CHECK(*row.measured < 1.05 * *plan.rows.front().measured);
  }
}

} // namespace

TEST_CASE("one step for the whole swarm is the fastest for a small model on fast lines") {
  const auto plan = planned("scenarios/swarm/lab.yaml");
  CHECK(plan.rows.front().method == "synchronous");
  CHECK(plan.rows.front().predicted.limit == "computing of lab");
  CHECK(row_of(plan, "moshpit", "groups of 3").predicted.limit == "optimizer steps of lab");
  check_by_running(plan);
}

TEST_CASE("a pipeline is the only way to train a model that fits on no device") {
  const auto plan = planned("scenarios/swarm/large-model.yaml");
  CHECK(plan.rows.front().method == "pipeline");
  const auto& whole = row_of(plan, "synchronous", "");
  CHECK(whole.impossible == "a host of 'home' needs 44.7 GiB for the whole model, and has 8.0 GiB");
  CHECK(whole.predicted.samples_per_second == 0);
  check_by_running(plan);
}

TEST_CASE("small groups are the fastest on many slow lines") {
  const auto plan = planned("scenarios/swarm/slow-lines.yaml");
  CHECK(plan.rows.front().method == "moshpit");
  CHECK(row_of(plan, "synchronous", "").predicted.limit == "uplinks of home");
  check_by_running(plan);
}

TEST_CASE("the arguments of each row make a scenario that the checks accept") {
  for (const std::string file :
       {"scenarios/swarm/lab.yaml", "scenarios/swarm/volunteers.yaml", "scenarios/quickstart.yaml"})
    for (const auto& row : planned(file).rows) {
      INFO(file << " " << row.method << " " << row.variant << ": " << row.impossible);
      if (row.impossible.empty()) REQUIRE(row.what);
      const auto loaded = scenarios::load(file, row.sets);
      CHECK(loaded.value.has_value() == row.what.has_value());
      if (loaded.value) {
        CHECK(loaded.value->training.method.name() == row.method);
        CHECK(loaded.value->training.micro_batch == row.what->training.micro_batch);
      }
    }
}

TEST_CASE("a plan says why a method is impossible") {
  const auto uncut =
      planned("scenarios/swarm/lab.yaml", {"workload={kind: quadratic, parameters: 4000}"});
  const auto& row = row_of(uncut, "pipeline", "2 stages");
  CHECK(row.impossible.find("cannot be cut into stages") != std::string::npos);
  CHECK(!row.what);

  const auto clipped = planned("scenarios/reference/moshpit-sgd.yaml");
  CHECK(row_of(clipped, "pipeline", "2 stages").impossible.starts_with("clip_norm needs"));
  // A grid has no place in a step of the whole swarm.
  CHECK(row_of(clipped, "synchronous", "").what);

  const auto late = planned("scenarios/swarm/slow-lines.yaml", {"averaging.round_timeout=10s"});
  CHECK(row_of(late, "synchronous", "").impossible ==
        "a round takes 60 s on the uplinks of home, and averaging.round_timeout is 10 s");
}

TEST_CASE("a scenario without methods to choose from has no plan") {
  const auto loaded = scenarios::load("scenarios/petals/chat.yaml");
  REQUIRE(loaded.value);
  const auto plan = scenarios::plan_methods(*loaded.value, "scenarios/petals/chat.yaml", {}, 0);
  REQUIRE(!plan);
  CHECK(plan.error().find("only training has methods to choose from") != std::string::npos);
}

TEST_CASE("a plan as JSON has the rows of the table") {
  const auto plan = planned("scenarios/swarm/large-model.yaml");
  const auto json = nlohmann::json::parse(scenarios::to_json(plan));
  REQUIRE(json.at("rows").size() == plan.rows.size());
  const auto& first = json.at("rows").front();
  CHECK(first.at("method") == "pipeline");
  CHECK(first.at("samples_per_second").get<double>() > 0);
  CHECK(first.at("measured").is_null());
  CHECK(!first.at("set").empty());
  CHECK(json.at("rows").back().at("samples_per_second").is_null());
}
