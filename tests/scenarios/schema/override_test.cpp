#include "scenarios/schema/lines.hpp"
#include "tests/scenarios/schema/files.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

namespace {

load_result with(const std::string& text, std::vector<std::string> sets) {
  return load_text(text, "s.yaml", sets);
}

} // namespace

TEST_CASE("settings reach values, maps, lists and list items") {
  const auto result =
      with(small("faults:\n  - {kill: process, select: home-0, at: 1s}\n"),
           {"peers.home.count=8", "devices.laptop.samples_per_second=3",
            "averaging.matchmaking_time=7s", "data.files=[a, b]", "faults.0.at=3s",
            "faults.1={kill: machine, select: home-7, on: training.step, nth: 4}",
            "expect.loss.final.max=2.5", "description=a: b # c", "training.optimizer.kind=lamb"});
  REQUIRE_MESSAGE(result.value, rendered(result));
  const scenario& s = *result.value;
  CHECK(s.peers[0].count == 8);
  CHECK(s.devices.at("laptop").samples_per_second == 3);
  CHECK(s.averaging.matchmaking_time == std::chrono::seconds(7));
  CHECK(s.data.files.size() == 2);
  REQUIRE(s.faults.size() == 2);
  CHECK(s.faults[0].at == std::chrono::seconds(3));
  CHECK(s.faults[1].scope == fault_scope::machine);
  CHECK(s.faults[1].nth == 4);
  CHECK(s.expect.at("loss.final").max == 2.5);
  CHECK(s.description == "a: b # c");
  CHECK(s.training.optimizer.kind == kernels::optimizer_kind::lamb);
}

TEST_CASE(
    "one value is enough for a list of texts, and ~ at the start of a path is the home folder") {
  const auto one = with(small(), {"data.files=/x.txt", "network.regions=eu"});
  REQUIRE_MESSAGE(one.value, rendered(one));
  CHECK(one.value->data.files == std::vector<std::string>{"/x.txt"});
  CHECK(one.value->network.regions == std::vector<std::string>{"eu"});
  REQUIRE(std::getenv("HOME") != nullptr);
  const auto home = with(small(), {"data.files=[~/x.txt, a~/b, ~c]"});
  REQUIRE(home.value);
  CHECK(home.value->data.files[0] == std::string(std::getenv("HOME")) + "/x.txt");
  CHECK(home.value->data.files[1].ends_with("/a~/b"));
  CHECK(home.value->data.files[2].ends_with("/~c"));
  // In a file a list is a list.
  CHECK(rendered(with(small("data: {files: /x.txt}\n"), {})).find("note: write [/x.txt]\n") !=
        std::string::npos);
}

TEST_CASE("a setting that makes a new group by mistake is told which one was meant") {
  const std::string line = "--set peers.hom.count=8: error: missing key '";
  const std::string or_line = fmt::format(" in peers.hom: give it, or a 'line' ({})\n", line_names);
  CHECK(rendered(with(small(), {"peers.hom.count=8"})) ==
        line + "device' in peers.hom\nnote: a new group 'hom'; did you mean 'home'?\n" + line +
            "down'" + or_line + line + "up'" + or_line);
  CHECK(with(small(), {"peers.lab={up: 1Gbit, down: 1Gbit, device: laptop}"}).value.has_value());
  const auto device = with(small(), {"devices.lapto.samples_per_second=8"});
  REQUIRE(device.value);
  CHECK(rendered(device).find("no peer uses the device 'lapto'\nnote: did you mean 'laptop'?\n") !=
        std::string::npos);
}

TEST_CASE("a matchmaking time that is too short for the farthest hosts gives a warning") {
  // Twice 109 ms and 76 ms between the regions: 588 ms there and back.
  const auto with_time = [](const std::string& time) {
    return with(small(), {"peers.home.delay=109ms", "network.default_delay=76ms",
                          "averaging.matchmaking_time=" + time});
  };
  const auto hurried = with_time("1s"), fine = with_time("2s");
  REQUIRE(hurried.value);
  CHECK(rendered(hurried).find("the farthest hosts have round trips of 588ms, too long for 1s. "
                               "They miss rounds until they adapt: raise "
                               "averaging.matchmaking_time") != std::string::npos);
  CHECK(rendered(fine).find("farthest hosts") == std::string::npos);
}

TEST_CASE("groups smaller than the swarm are warned of") {
  const auto few = with(small(), {"averaging.group_size=3"});
  REQUIRE(few.value);
  CHECK(rendered(few) == "--set averaging.group_size=3: warning: group_size 3 is less than the 4 "
                         "peers: those who do not "
                         "fit in the group fall out of sync\n");
  CHECK(with(small(), {"averaging.group_size=4"}).warnings.empty());
  // By default, too.
  CHECK(with(small(), {"peers.home.count=257"}).warnings.size() == 1);
}

TEST_CASE("a prefetch that the shard would refuse is out of range") {
  CHECK(with(small(), {"data.prefetch_samples=65536"}).value.has_value());
  CHECK(rendered(with(small(), {"data.prefetch_samples=65537"})).find("at most 65536") !=
        std::string::npos);
}

TEST_CASE("a later setting wins") {
  const auto result = with(small(), {"seed=2", "seed=3"});
  REQUIRE(result.value);
  CHECK(result.value->seed == 3);
}

TEST_CASE("a setting changes only the place that it names, not what shares an anchor with it") {
  const auto result =
      with("stop_time: 1h\nworkload: {kind: timing}\ndevices: {laptop: {samples_per_second: 10}}\n"
           "x-line: &line {up: 10Mbit, down: 50Mbit, device: laptop}\n"
           "peers: {a: *line, b: *line}\n",
           {"peers.a.up=20Mbit"});
  REQUIRE_MESSAGE(result.value, rendered(result));
  CHECK(result.value->peers[0].up == data_rate{20e6});
  CHECK(result.value->peers[1].up == data_rate{10e6});
}

TEST_CASE("a bad setting is reported as a setting") {
  const auto text = [](std::vector<std::string> sets) {
    return rendered(with(small(), std::move(sets)));
  };
  CHECK(text({"averaging.group_size=0"}) ==
        "--set averaging.group_size=0: error: averaging.group_size: has to be at least 1 and at "
        "most 4000000\n");
  CHECK(text({"peers.home.bandwith=3"})
            .starts_with(
                "--set peers.home.bandwith=3: error: unknown key 'bandwith' in peers.home\n"));
  CHECK(text({"seed"}) ==
        "--set seed: error: expected key=value, for example peers.home.count=8\n");
  CHECK(text({"=3"}) == "--set =3: error: expected key=value, for example peers.home.count=8\n");
  CHECK(text({"seed.x=3"}).starts_with("--set seed.x=3: error: unknown key") == false);
  CHECK(text({"stop_time.x=3"}) ==
        "--set stop_time.x=3: error: 'stop_time' is a single value and has no 'x'\n");
  CHECK(text({"a..b=3"}).starts_with("--set a..b=3: error: an empty step in the path\n"));
  CHECK(text({"data.files=[a"}).starts_with("--set data.files=[a: error: YAML syntax: "));
  CHECK(text({"faults=[]", "faults.1.at=3s"}) ==
        "--set faults.1.at=3s: error: faults.1 does not exist: the list has 0 items\n");
  CHECK(text({"faults=[]", "faults.first.at=3s"}) ==
        "--set faults.first.at=3s: error: 'faults' is a list: name one of its items by its "
        "position, from 0\n");
  CHECK(text({"peers.home.count=-1"}) ==
        "--set peers.home.count=-1: error: peers.home.count: '-1' is negative, expected a count\n");
}

TEST_CASE("errors of the file come before those of settings, both are reported") {
  const auto result = with(small("sed: 3\n"), {"seed=x"});
  REQUIRE(result.errors.size() == 2);
  CHECK(result.errors[0].file == "s.yaml");
  CHECK(result.errors[1].file == "--set seed=x");
}
