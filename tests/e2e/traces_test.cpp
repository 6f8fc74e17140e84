// A trace in each format, replayed on the quickstart swarm with the workload `timing`. The present
// peers are those of the trace, and the run reaches its target. tests/churn/replay_traces does the
// same with real traces.
#include "netem/trace_formats.hpp"
#include "netem/trace_statistics.hpp"
#include "tests/e2e/support/program.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

using namespace shoal::e2e;
using shoal::netem::load_traces;
using shoal::netem::trace;

namespace {

using counts = std::vector<std::pair<shoal::duration, std::int64_t>>;

/// Without what is after `end`, and without steps that change nothing.
counts until(const counts& from, shoal::duration end) {
  counts out;
  for (const auto& step : from)
    if (step.first < end && (out.empty() || out.back().second != step.second)) out.push_back(step);
  return out;
}

trace loaded(const std::vector<std::string>& files) {
  auto out = load_traces(files, {});
  REQUIRE_MESSAGE(out, (out ? "" : out.error()));
  return std::move(*out);
}

/// The quickstart groups with `peers` hosts in all, each of them a peer of the trace.
std::vector<std::string> arguments(const std::string& file, std::size_t peers,
                                   const std::string& out) {
  std::vector<std::string> all{"run", "scenarios/quickstart.yaml", "--json", "--out", out};
  const auto set = [&](const std::string& what) {
    all.emplace_back("--set");
    all.push_back(what);
  };
  for (const char* plain :
       {"workload.kind=timing", "workload.parameters=250000", "faults=[]", "stop_time=601s",
        "training.epochs=0", "training.target_batch=256", "expect.epochs.min=12"})
    set(plain);
  const std::size_t some = std::max<std::size_t>(peers / 6, 1);
  const std::pair<const char*, std::size_t> groups[] = {
      {"home", peers - 2 * some}, {"cable", some}, {"fibre", some}, {"late", 0}};
  for (const auto& [group, count] : groups) {
    set(fmt::format("peers.{}.count={}", group, count));
    set(fmt::format("peers.{}.start=0s", group));
    set(fmt::format("peers.{}.start_spacing=0s", group));
    set(fmt::format("peers.{}.churn={{trace: '{}', match: order}}", group,
                    std::filesystem::absolute(file).string()));
  }
  return all;
}

} // namespace

TEST_CASE(
    "the peers of a replayed trace are there when it says so, and the run reaches its target") {
  const std::string folder = "tests/scenarios/traces/";
  for (const char* name :
       {"sessions.csv", "event_trace.tab", "counts.csv", "events.jsonl", "peers.csv"}) {
    CAPTURE(name);
    const trace wanted = loaded({folder + name});
    scratch_folder scratch;
    const std::string out = (scratch / "run").string();
    const auto run = run_program(arguments(folder + name, wanted.peers().size(), out));
    INFO(run.err);
    REQUIRE(run.exit == 0); // 3: it missed its target
    const auto summary = nlohmann::json::parse(run.out);
    CHECK(summary["epochs"] >= 12);
    CHECK(summary["samples"] >= 12 * 256);
    const trace seen = loaded({out + "/peers.csv"});
    CHECK(until(live_counts(seen), std::chrono::seconds(600)) ==
          until(live_counts(wanted), std::chrono::seconds(600)));
  }
}

TEST_CASE("SimGrid profiles, one for each host, are replayed again and again") {
  const std::string folder = "tests/scenarios/traces/profiles/";
  scratch_folder scratch;
  const std::string out = (scratch / "run").string();
  const auto run = run_program(arguments(folder + "*.trace", 3, out));
  INFO(run.err);
  REQUIRE(run.exit == 0);
  const trace seen = loaded({out + "/peers.csv"});
  using namespace std::chrono_literals;
  // home-0 is present for a minute, absent for one, present for two, and so on.
  const auto sessions = seen.sessions_of("home-0");
  REQUIRE(sessions->size() >= 3);
  CHECK((*sessions)[0] == shoal::netem::session{0s, 1min});
  CHECK((*sessions)[1] == shoal::netem::session{2min, 4min});
  CHECK((*sessions)[2] == shoal::netem::session{5min, 7min});
  CHECK(seen.sessions_of("fibre-0")->front() == shoal::netem::session{0s, shoal::netem::forever});
}

TEST_CASE("a run whose churn was drawn can be replayed from its own peers") {
  scratch_folder scratch;
  const std::string first = (scratch / "first").string(), again = (scratch / "again").string();
  std::vector<std::string> all{"run",
                               "scenarios/quickstart.yaml",
                               "--json",
                               "--set",
                               "workload.kind=timing",
                               "--set",
                               "workload.parameters=250000",
                               "--set",
                               "faults=[]",
                               "--set",
                               "stop_time=10min",
                               "--set",
                               "training.epochs=0",
                               "--set",
                               "training.target_batch=256"};
  auto drawn = all;
  for (const char* group : {"home", "cable", "fibre", "late"})
    drawn.insert(
        drawn.end(),
        {"--set",
         fmt::format(
             "peers.{}.churn={{preset: spot_t4, session: {{mean: 3min}}, gap: {{mean: 1min}}}}",
             group)});
  drawn.insert(drawn.end(), {"--out", first});
  REQUIRE(run_program(drawn).exit == 0);
  auto replayed = all;
  for (const char* group : {"home", "cable", "fibre", "late"})
    replayed.insert(replayed.end(),
                    {"--set", fmt::format("peers.{}.start=0s", group), "--set",
                     fmt::format("peers.{}.start_spacing=0s", group), "--set",
                     fmt::format("peers.{}.churn={{trace: '{}'}}", group, first + "/peers.csv")});
  replayed.insert(replayed.end(), {"--out", again});
  REQUIRE(run_program(replayed).exit == 0);
  const trace a = loaded({first + "/peers.csv"}), b = loaded({again + "/peers.csv"});
  CHECK(a.peers().size() > 10);
  const auto end = std::chrono::seconds(599);
  CHECK(until(live_counts(a), end) == until(live_counts(b), end));
}
