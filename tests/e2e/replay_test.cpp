// `shoal replay` says that a run can be had again: ten small scenarios that have little in common.
#include "tests/e2e/support/program.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace shoal::e2e;

namespace {

std::string scenario(const std::string& kind, const std::string& network, const std::string& group,
                     const std::string& more) {
  return fmt::format("stop_time: 60s\n"
                     "network: {{{}}}\n"
                     "devices: {{d: {{samples_per_second: 20, jitter: 15%, step_time: 20ms}}}}\n"
                     "peers:\n"
                     "  p: {{up: 4Mbit, down: 20Mbit, device: d, {}}}\n"
                     "workload: {{kind: {}, parameters: 3000{}}}\n{}",
                     network, group, kind,
                     kind == std::string_view("timing") ? ", sample_size: 64B" : "", more);
}

const std::string training = "training: {target_batch: 32, micro_batch: 4, epochs: 8}\n";
const std::string still = "default_delay: 30ms";
const std::string shaken = "default_delay: 30ms, default_jitter: 20ms";
const std::string regions =
    "regions: [eu, us], default_delay: 10ms, links: [{from: eu, to: us, delay: 60ms, jitter: 9ms}]";

void check_replays(const std::string& text, const std::vector<std::string>& more = {}) {
  scratch_folder folder;
  spill(folder / "s.yaml", text);
  auto out = (folder / "out").string();
  std::vector<std::string> arguments{"run", (folder / "s.yaml").string(), "--json", "--out", out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  auto run = run_program(arguments);
  INFO(run.err << text);
  REQUIRE(run.exit == 0);
  auto summary = nlohmann::json::parse(run.out);
  CHECK(summary["event_hash"].is_string());
  CHECK(summary["epochs"] > 0);
  auto replay = run_program({"replay", out});
  INFO(replay.out << replay.err);
  CHECK(replay.exit == 0);
}

} // namespace

TEST_CASE("replay: sizes only") {
  check_replays(scenario("timing", still, "count: 3", training));
}
TEST_CASE("replay: numbers") {
  check_replays(scenario("quadratic", still, "count: 3", training));
}
TEST_CASE("replay: one peer, under another seed") {
  check_replays(scenario("quadratic", still, "count: 1", training), {"--seed", "77"});
}
TEST_CASE("replay: jitter on every line") {
  check_replays(scenario("timing", shaken, "count: 6, start_spacing: 70ms", training));
}
TEST_CASE("replay: two regions") {
  check_replays(
      scenario("quadratic", regions, "count: 3, region: us", "data: {region: eu}\n" + training));
}
TEST_CASE("replay: groups smaller than the swarm") {
  check_replays(
      scenario("quadratic", shaken, "count: 6", training + "averaging: {group_size: 3}\n"));
}
TEST_CASE("replay: exponential churn") {
  check_replays(scenario(
      "timing", shaken,
      "count: 5, churn: {session: {distribution: exponential, mean: 12s}, gap: {distribution: "
      "exponential, mean: 3s}}",
      training));
}
TEST_CASE("replay: machines of Weibull lives that compute") {
  check_replays(scenario("quadratic", still,
                         "count: 5, churn: {ending: machine, session: {distribution: weibull, "
                         "mean: 60s, shape: 0.8}, gap: "
                         "{distribution: exponential, mean: 2s}}",
                         training));
}
TEST_CASE("replay: faults at probes and at times") {
  check_replays(scenario("quadratic", shaken, "count: 4",
                         training +
                             "faults:\n"
                             "  - {kill: machine, select: p-1, on: all_reduce.half_sent, nth: 2}\n"
                             "  - {restart: process, select: p-2, at: 4s, downtime: 2s}\n"));
}
TEST_CASE("replay: a run that was ended early and recorded every event") {
  check_replays(scenario("timing", shaken, "count: 4", training + "record: {events: all}\n"),
                {"--until", "5s"});
}
TEST_CASE("a run directory is continued from a moment, with the same future or with another") {
  scratch_folder folder;
  spill(folder / "s.yaml", scenario("quadratic", shaken, "count: 4", training));
  const auto out = (folder / "out").string(), branch = (folder / "branch").string();
  REQUIRE(run_program({"run", (folder / "s.yaml").string(), "--out", out, "--no-report"}).exit ==
          0);
  const auto same = run_program({"run", out, "--from", "2s"});
  INFO(same.out << same.err);
  CHECK(same.exit == 0);
  CHECK(same.out.find("event hash is the same") != std::string::npos);
  CHECK(same.out.find("state hash is the same") != std::string::npos);
  const auto other = run_program(
      {"run", out, "--from", "2s", "--seed-after", "7", "--out", branch, "--no-report"});
  INFO(other.out << other.err);
  CHECK(other.exit == 0);
  CHECK(other.out.find("with the random numbers of seed 7") != std::string::npos);
  CHECK(slurp(folder / "branch" / "run.yaml").find("seed_after: \"2s 7\"") != std::string::npos);
  // The branch is a run like others: it can be replayed, and continued itself.
  CHECK(run_program({"replay", branch}).exit == 0);
  CHECK(run_program({"run", branch, "--from", "3s"}).exit == 0);
  CHECK(run_program({"diff", out, branch}).out.find("seed_after") != std::string::npos);
}

TEST_CASE("a branch that cannot be is refused with what to do") {
  scratch_folder folder;
  spill(folder / "s.yaml", scenario("timing", still, "count: 2", training));
  const auto file = (folder / "s.yaml").string(), out = (folder / "out").string();
  REQUIRE(run_program({"run", file, "--out", out, "--no-report"}).exit == 0);
  const auto refused = [](const std::vector<std::string>& arguments, int status,
                          const std::string& text) {
    const auto run = run_program(arguments);
    INFO(run.out << run.err);
    CHECK(run.exit == status);
    CHECK(run.err.find(text) != std::string::npos);
  };
  refused({"run", out}, 1, "--from TIME");
  refused({"run", out, "--from", "1h"}, 1, "is not within the run");
  refused({"run", out, "--from", "soon"}, 1, "--from: ");
  refused({"run", file, "--from", "1s"}, 1, "--from continues a run that --out kept");
  refused({"run", file, "--seed-after", "7"}, 2, "--seed-after needs --from");
  refused({"run", out, "--from", "1s", "--seed", "2"}, 2, "--seed cannot change a run");
  refused({"run", out, "--from", "1s", "--out", out, "--force"}, 1, "is the directory of the run");
  // A file of metrics of another history.
  auto metrics = slurp(folder / "out" / "metrics.csv");
  const auto row = metrics.find("\n1.0");
  REQUIRE(row != std::string::npos);
  metrics.insert(row + 5, "7");
  spill(folder / "out" / "metrics.csv", metrics);
  refused({"run", out, "--from", "4s"}, 3, "the past is not that of");
}
