#include "scenarios/sweep/plan.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

constexpr const char* text =
    "stop_time: 60s\n"
    "workload: {kind: timing, parameters: 1000}\n"
    "devices: {laptop: {samples_per_second: 10}}\n"
    "peers: {home: {count: 3, up: 10Mbit, down: 50Mbit, device: laptop}}\n";

sweep_plan plan_of(const std::string& file) {
  sweep_plan out;
  out.scenario = file;
  out.sets = {"training.epochs=4"};
  out.vary = {{"peers.home.count", {"3", "5"}}, {"peers.home.up", {"5Mbit", "10Mbit", "20Mbit"}}};
  out.seeds = {1, 2};
  return out;
}

} // namespace

TEST_CASE("cells are numbered with seeds fastest, then the last option") {
  const auto plan = plan_of("s.yaml");
  CHECK(plan.points() == 6);
  CHECK(plan.cells() == 12);
  CHECK(plan.choices(0) == std::vector<std::size_t>{0, 0});
  CHECK(plan.choices(1) == std::vector<std::size_t>{0, 1});
  CHECK(plan.choices(3) == std::vector<std::size_t>{1, 0});
  CHECK(plan.sets_of(4) == std::vector<std::string>{"training.epochs=4", "peers.home.count=5",
                                                    "peers.home.up=10Mbit"});
  CHECK(plan.label_of(4) == "peers.home.count=5 peers.home.up=10Mbit");
  CHECK(plan.point_of(9) == 4);
  CHECK(plan.seed_of(9) == 2);
  CHECK(cell_name(plan, 9) == "09");
}

TEST_CASE("a grid that cannot be is refused") {
  const auto refused = [](auto change) {
    auto plan = plan_of("s.yaml");
    change(plan);
    const auto sound = check_grid(plan);
    return sound ? std::string{} : sound.error();
  };
  CHECK(refused([](auto&) {}).empty());
  CHECK(refused([](auto& p) { p.vary.clear(), p.seeds = {1}; }) ==
        "there is nothing to sweep: give --vary PATH=VALUES, or several --seeds");
  CHECK(refused([](auto& p) { p.vary.push_back(p.vary[0]); }) ==
        "--vary peers.home.count is there twice");
  CHECK(refused([](auto& p) { p.sets.push_back("peers.home.up=1Mbit"); }) ==
        "peers.home.up is both varied and set");
  CHECK(refused([](auto& p) { p.vary[0].path = "seed"; }) ==
        "--vary seed: seeds are given by --seeds");
  CHECK(refused([](auto& p) { p.vary[0].values.resize(400), p.vary[1].values.resize(126); }) ==
        "the grid has more than 100000 cells; vary less, or by fewer values or seeds");
}

TEST_CASE("each point's scenario is checked, and the first wrong one is told") {
  const scratch_folder folder;
  auto plan = plan_of(folder.write("s.yaml", text));
  const auto sound = check_points(plan);
  CHECK(sound.errors.empty());
  CHECK(sound.digest.size() == 64);
  CHECK(sound.name == "s");
  plan.vary[1].values[2] = "20Mbps";
  const auto wrong = check_points(plan);
  REQUIRE(wrong.errors.size() == 1);
  CHECK(wrong.wrong_point == 2);
  CHECK(wrong.errors[0].file == "--vary peers.home.up=20Mbps");
  plan.vary[1] = {"peers.home.uup", {"1Mbit", "2Mbit"}};
  const auto unknown = check_points(plan);
  REQUIRE(!unknown.errors.empty());
  CHECK(unknown.errors[0].file == "--vary peers.home.uup=1Mbit");
  CHECK(unknown.errors[0].notes == std::vector<std::string>{"did you mean 'up'?"});
}

TEST_CASE("a plan that was written is read as it was") {
  auto plan = plan_of("/a \"b\"/s.yaml");
  plan.sets.push_back("name=\"x: y\"");
  plan.metrics = {"loss.final"};
  plan.digest = std::string(64, 'a');
  plan.build = "0.1.0 (abc)";
  const auto again = read_plan(to_yaml(plan));
  REQUIRE(again.ok());
  CHECK(*again == plan);
  plan.vary.clear();
  CHECK(*read_plan(to_yaml(plan)) == plan);
  CHECK(read_plan("a: 1").error() == "'shoal' is missing");
  CHECK(!read_plan("[").ok());
}

TEST_CASE("in what two sweeps differ is said by name") {
  const scratch_folder folder;
  auto was = plan_of(folder.write("s.yaml", text));
  const auto first = check_points(was);
  was.digest = first.digest;
  CHECK(!difference(was, first.first_scenario, was, first.first_scenario));
  auto now = was;
  now.metrics = {"epochs"};
  CHECK(!difference(was, first.first_scenario, now, first.first_scenario));
  now.vary[0].values = {"3"};
  CHECK(difference(was, first.first_scenario, now, first.first_scenario) ==
        "--vary was peers.home.count=3,5 and is now peers.home.count=3");
  now = was;
  now.seeds = {1, 2, 3};
  CHECK(difference(was, first.first_scenario, now, first.first_scenario) ==
        "--seeds was 1,2 and is now 1,2,3");
  folder.write("s.yaml", std::string(text) + "averaging: {round_timeout: 60s}\n");
  const auto changed = check_points(was);
  now = was;
  now.digest = changed.digest;
  CHECK(difference(was, first.first_scenario, now, changed.first_scenario) ==
        was.scenario + " has changed since: averaging.round_timeout was 2min and is now 1min");
}
