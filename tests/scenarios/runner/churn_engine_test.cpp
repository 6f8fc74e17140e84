// The engine against a world that is a queue and a set of running machines.
#include "scenarios/runner/churn_engine.hpp"
#include "tests/scenarios/schema/files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;

namespace {

struct toy_world {
  std::multimap<duration, std::function<void()>> queue; // equal times in the order of insertion
  std::size_t longest_queue = 0;
  std::set<std::uint32_t> up;
  duration now{};
  std::string log;
  churn_engine engine{{[this](duration when, std::function<void()> action) {
                         CHECK(when >= now);
                         queue.emplace(when, std::move(action));
                         longest_queue = std::max(longest_queue, queue.size());
                       },
                       [this](std::uint32_t machine) { return up.contains(machine); },
                       [this](std::uint32_t machine) {
                         REQUIRE(up.insert(machine).second);
                         log += to_string(now) + " +" + std::to_string(machine) + "\n";
                       },
                       [this](std::uint32_t machine, fault_scope scope) {
                         REQUIRE(up.erase(machine) == 1);
                         log += to_string(now) + " -" + std::to_string(machine) +
                                (scope == fault_scope::machine ? " silent\n" : "\n");
                       }}};

  void run(duration limit) {
    while (!queue.empty() && queue.begin()->first <= limit) {
      now = queue.begin()->first;
      auto action = std::move(queue.begin()->second);
      queue.erase(queue.begin());
      action();
    }
    now = limit;
  }
};

churned_host replaying(std::vector<netem::session> sessions, duration offset = {},
                       fault_scope ending = fault_scope::process) {
  return {netem::session_source::replayed(
              std::make_shared<const std::vector<netem::session>>(std::move(sessions))),
          offset, ending};
}

scenario loaded(const std::string& churn) {
  const auto result = load_text("stop_time: 1h\nworkload: {kind: timing}\ndevices: {laptop: "
                                "{samples_per_second: 10}}\nseed: 7\n"
                                "peers:\n"
                                "  steady: {count: 2, up: 10Mbit, down: 50Mbit, device: laptop}\n"
                                "  home: {count: 3, up: 10Mbit, down: 50Mbit, device: laptop, "
                                "start: 5s, start_spacing: 1s, churn: " +
                                    churn + "}\n",
                                "s.yaml");
  REQUIRE_MESSAGE(result.value, test::rendered(result));
  return *result.value;
}

} // namespace

TEST_CASE("hosts start and end when their sessions do, with one event each ahead") {
  toy_world world;
  world.engine.add(1, replaying({{0s, 10s}, {20s, 30s}, {30s, 35s}}));
  world.engine.add(2, replaying({{5s, 6s}, {7s, netem::forever}}, 100s, fault_scope::machine));
  world.engine.add(3, replaying({}));
  world.run(1h);
  CHECK(world.log ==
        "0s +1\n10s -1\n20s +1\n30s -1\n30s +1\n35s -1\n105s +2\n106s -2 silent\n107s +2\n");
  CHECK(world.longest_queue == 2);
  CHECK(world.engine.started() == 5);
  CHECK(world.engine.ended() == 4);
  CHECK(world.up == std::set<std::uint32_t>{2});
}

TEST_CASE("a host that a fault killed is back with its next session") {
  toy_world world;
  world.engine.add(1, replaying({{0s, 10s}, {20s, 30s}}));
  world.run(4s);
  world.up.erase(1);
  world.run(1min);
  CHECK(world.log == "0s +1\n20s +1\n30s -1\n");
}

TEST_CASE("a host that a fault started in a gap stays until the end of its next session") {
  toy_world world;
  world.engine.add(1, replaying({{0s, 10s}, {20s, 30s}}));
  world.run(15s);
  world.up.insert(1);
  world.run(1min);
  CHECK(world.log == "0s +1\n10s -1\n30s -1\n");
}

TEST_CASE("a stopped engine starts and ends nothing") {
  toy_world world;
  world.engine.add(1, replaying({{0s, 10s}, {20s, 30s}}));
  world.engine.add(2, replaying({{8s, 10s}}));
  world.run(5s);
  world.engine.stop();
  world.run(1min);
  CHECK(world.log == "0s +1\n");
  CHECK(world.queue.empty());
}

TEST_CASE("only groups with churn are planned, each host from its own start") {
  const auto what = loaded("{session: {distribution: exponential, mean: 1min}, gap: {distribution: "
                           "weibull, mean: 10s, shape: 0.7}, ending: machine}");
  const auto hosts = expand_hosts(what);
  auto plan = plan_churn(what, hosts);
  REQUIRE(plan);
  REQUIRE(plan->size() == 5);
  CHECK_FALSE((*plan)[0]);
  CHECK_FALSE((*plan)[1]);
  toy_world world;
  for (std::size_t i = 2; i < 5; ++i) {
    REQUIRE((*plan)[i]);
    CHECK((*plan)[i]->offset == hosts[i].start);
    CHECK((*plan)[i]->ending == fault_scope::machine);
    world.engine.add(static_cast<std::uint32_t>(i), std::move(*(*plan)[i]));
  }
  world.run(8s);
  CHECK(world.log.starts_with("5s +2\n"));
  CHECK(world.log.find("6s +3\n") != std::string::npos);
  CHECK(world.log.find("7s +4\n") != std::string::npos);
  world.run(10h);
  // 3 hosts, cycles of 70 s on average: about 1543 starts, standard deviation about 35.
  CHECK(world.engine.started() > 1400);
  CHECK(world.engine.started() < 1690);
}

TEST_CASE("the plan of one group does not move when another has more hosts") {
  const auto sessions = [](std::uint64_t steady) {
    auto what = loaded("{session: {distribution: exponential, mean: 1min}, gap: {distribution: "
                       "exponential, mean: 10s}}");
    what.peers[0].count = steady;
    auto plan = plan_churn(what, expand_hosts(what));
    REQUIRE(plan);
    std::vector<netem::session> out;
    for (int i = 0; i < 50; ++i) out.push_back(*plan->back()->sessions.next());
    return out;
  };
  CHECK(sessions(2) == sessions(40));
}

TEST_CASE("a trace's hosts are replayed, and a trace that went bad since the check is an error") {
  const auto path = (std::filesystem::temp_directory_path() / "shoal_plan_churn_test.csv").string();
  std::ofstream(path) << "peer,start,end\nhome-0,1,2\nhome-2,0,10\nhome-1,3,4\nhome-0,6,7\n";
  const auto what = loaded("{trace: " + path + "}");
  auto plan = plan_churn(what, expand_hosts(what));
  REQUIRE(plan);
  toy_world world;
  for (std::uint32_t i = 2; i < 5; ++i) world.engine.add(i, std::move(*(*plan)[i]));
  world.run(1h);
  CHECK(world.log == "6s +2\n7s +4\n7s -2\n9s +3\n10s -3\n11s +2\n12s -2\n17s -4\n");
  std::ofstream(path) << "peer,start,end\nhome-0,1,2\nhome-0,1,2\n";
  CHECK(plan_churn(what, expand_hosts(what)).error() ==
        path + ":3:8: error: overlaps the session of 'home-0' before this one, which ends at 2s");
  std::remove(path.c_str());
  CHECK_FALSE(plan_churn(what, expand_hosts(what)));
}
