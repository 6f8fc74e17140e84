#include "scenarios/observe/case_book.hpp"
#include "scenarios/observe/guard_book.hpp"
#include "scenarios/page/run_view.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;
using json = nlohmann::json;

namespace {

std::string yaml(std::uint64_t peers) {
  return fmt::format(R"(name: seen
description: 'a "quoted" </script> name'
seed: 7
world: sim
stop_time: 1h
network: {{regions: [eu, us]}}
devices: {{laptop: {{samples_per_second: 8}}}}
peers:
  home: {{count: {}, region: eu, up: 10Mbit, down: 50Mbit, device: laptop}}
  lab: {{count: 2, region: us, up: 100Mbit, down: 100Mbit, device: laptop}}
data: {{region: us, up: 1Gbit, down: 1Gbit, replicas: 1}}
workload: {{kind: timing, parameters: 1000}}
averaging: {{compression: float16}}
x-run: {{shoal: 0.1.0, build: abc}}
)",
                     peers);
}

json document(run_view& view) {
  return json::parse(view.document());
}

/// The group of a round, 32 digits.
std::string group(int i) {
  return fmt::format("{:032x}", i + 1);
}

void tell_round(run_view& view, int i, duration started, duration took, const char* outcome,
                const char* reason, std::vector<std::string> members) {
  const std::string id = group(i);
  for (const std::string& one : members)
    view.round_ended(started + took, {one, id, static_cast<std::uint64_t>(i), outcome, reason});
  view.round({id, static_cast<std::uint64_t>(i), started, started + took, members.size(), outcome,
              reason, false, 8 * members.size()});
}

} // namespace

TEST_CASE("a view has the present peers, their states, and their contributions") {
  run_view view;
  view.begun(yaml(2));
  view.host_started(0s, "home-0");
  view.host_started(10s, "home-1");
  view.phase(20s, "home-0", "computing");
  view.phase(60s, "home-0", "averaging");
  view.contribution(80s, "home-0", 30, 2.0);
  view.contribution(90s, "home-0", 10, 4.0);
  view.contribution(90s, "home-1", 60, 1.0);
  view.host_ended(100s, "home-1", "machine_killed");
  view.metrics_row("100,3,100,1,2.5,,1,1,2,1,1,0,0,0,0,0,0,0,0,0,0\n");

  const json all = document(view);
  CHECK(all["run"]["name"] == "seen");
  CHECK(all["run"]["description"] == "a \"quoted\" </script> name");
  CHECK(all["run"]["compression"]["ratio"] == 2);
  CHECK(all["scenario"] == yaml(2));
  CHECK(all["summary"].is_null());
  CHECK(all["series"]["epoch"] == json{3});
  CHECK(all["series"]["loss_held_out"] == json{nullptr});

  const json& people = all["participants"];
  CHECK(people["samples"] == 100);
  REQUIRE(people["hosts"].size() == 2);
  CHECK(people["hosts"][0]["name"] == "home-1");
  CHECK(people["hosts"][0]["samples"] == 60);
  CHECK(people["hosts"][0]["seconds"] == 90);
  CHECK(people["hosts"][0]["alive"] == false);
  CHECK(people["hosts"][1]["loss"] == 2.5);
  CHECK(people["hosts"][1]["rounds"] == 2);
  CHECK(people["hosts"][1]["seconds"] == 100);
  CHECK(people["groups"][0]["samples"] == 100);

  const json& sessions = all["sessions"];
  CHECK(sessions["by"] == "host");
  REQUIRE(sessions["rows"].size() == 2);
  // home-0: a fifth joining, two fifths computing, two fifths averaging.
  const auto bins = sessions["bins"].get<std::size_t>();
  const std::string joining = sessions["rows"][0]["shares"][0],
                    computing = sessions["rows"][0]["shares"][1];
  CHECK(std::count(joining.begin(), joining.end(), 'z') ==
        doctest::Approx(0.2 * static_cast<double>(bins)).epsilon(0.05));
  CHECK(std::count(computing.begin(), computing.end(), 'z') ==
        doctest::Approx(0.4 * static_cast<double>(bins)).epsilon(0.05));
  CHECK(sessions["ends"] == json{{"home-1", 100, "machine_killed"}});
}

TEST_CASE("rounds that went wrong or took long are kept with their members and transfers") {
  run_view view;
  view.begun(yaml(2));
  const auto send = [&](std::uint64_t number, const char* from, const char* to, duration begun,
                        duration left, const char* why) {
    view.transfer({number, from, to, "part_chunk", 1000, begun, begun, left, left + 50ms, false,
                   why, left - begun});
  };
  for (int i = 0; i < 1000; ++i) {
    const duration start = i * 10s;
    send(2 * i + 1, "home-0", "home-1", start + 1s, start + 2s, "uplink of home-0");
    send(2 * i + 2, "home-1", "home-0", start + 1s, start + 3s, "slow start");
    if (i == 500)
      tell_round(view, i, start, 4s, "failed", "reducer_lost", {"home-0", "home-1"});
    else
      tell_round(view, i, start, i == 300 ? 9s : 4s, "ok", "none", {"home-0", "home-1"});
  }
  view.round_ended(5s, {"lab-0", group(-1), 3, "failed", "matchmaking_timeout"});

  const json rounds = document(view)["rounds"];
  CHECK(rounds["total"] == 1000);
  CHECK(rounds["by_outcome"]["failed"] == 1);
  CHECK(rounds["by_reason"] == json{{"reducer_lost", 1}});
  CHECK(rounds["attempts"][0]["reason"] == "matchmaking_timeout");
  const auto find = [&](int epoch) {
    for (const json& one : rounds["kept"])
      if (one["epoch"] == epoch) return one;
    return json{};
  };
  CHECK(find(999)["outcome"] == "ok");
  CHECK(find(300)["ended"] == 3009);
  CHECK(find(100).is_null());
  const json lost = find(500);
  CHECK(lost["reason"] == "reducer_lost");
  CHECK(lost["ends"].size() == 2);
  REQUIRE(lost["transfers"]["rows"].size() == 2);
  CHECK(lost["transfers"]["count"] == 2);
  CHECK(lost["transfers"]["rows"][0]["from"] == "home-1"); // this transfer arrived last
  CHECK(lost["transfers"]["rows"][0]["why"] == "slow start");
  CHECK(lost["transfers"]["rows"][1]["why"] == "uplink of home-0");
}

TEST_CASE("a view has the hosts of each stage of a pipeline over time, and their moves") {
  run_view view;
  view.begun(yaml(3));
  CHECK(!document(view).contains("stages"));
  for (const char* host : {"home-0", "home-1", "home-2"}) view.host_started(0s, host);
  view.stage_held(0s, "home-0", 0);
  view.stage_held(0s, "home-1", 0);
  view.stage_held(10s, "home-2", 1);
  view.stage_held(20s, "home-1", std::nullopt);
  view.stage_held(22s, "home-1", 1);
  view.host_ended(30s, "home-2", "machine_killed");
  view.metrics_row("40,3,100,1,2.5,,1,1,2,1,1,0,0,0,0,0,0,0,0,0,0\n");
  const auto stages = document(view).at("stages");
  const auto hosts_at = [&](std::size_t stage, double second) -> double {
    return stages.at("hosts").at(stage).at(
        static_cast<std::size_t>(second / stages.at("bin").get<double>()));
  };
  CHECK(hosts_at(0, 5) == 2);
  CHECK(hosts_at(0, 35) == 1);
  CHECK(hosts_at(1, 5) == 0);
  CHECK(hosts_at(1, 25) == 2);
  CHECK(hosts_at(1, 35) == 1);
  CHECK(stages.at("places") == json::parse(R"([[0,"home-0",40,true],[0,"home-1",20,false],)"
                                           R"([1,"home-1",18,true],[1,"home-2",20,false]])"));
  CHECK(stages.at("moved") == 1);
  CHECK(stages.at("moves") == json::parse(R"([[22,"home-1",0,1]])"));
}

TEST_CASE("a view has the load of each stage of a pipeline over time") {
  run_view view;
  view.begun(yaml(3));
  for (const char* host : {"home-0", "home-1", "home-2"}) view.host_started(0s, host);
  view.stage_held(0s, "home-0", 0);
  view.stage_held(0s, "home-1", 0);
  view.stage_held(0s, "home-2", 1);
  view.stage_worked(10s, {"home-0", 0, 10s, 5s});
  view.stage_worked(20s, {"home-0", 0, 10s, 9s});
  view.stage_worked(20s, {"home-1", 0, 20s, 6s});
  view.stage_worked(30s, {"home-2", 1, 10s, 10s});
  view.metrics_row("40,3,100,1,2.5,,1,1,2,1,1,0,0,0,0,0,0,0,0,0,0\n");
  const auto stages = document(view).at("stages");
  const auto load_at = [&](std::size_t stage, double second) -> json {
    return stages.at("loads").at(stage).at(
        static_cast<std::size_t>(second / stages.at("bin").get<double>()));
  };
  CHECK(load_at(0, 5) == 0.4);
  CHECK(load_at(0, 15) == 0.6);
  CHECK(load_at(0, 25).is_null());
  CHECK(load_at(1, 15).is_null());
  CHECK(load_at(1, 25) == 1);
}

TEST_CASE("a view has the hosts of each expert of a mixture, its use, and its copies") {
  using news = heard_expert::news;
  run_view view;
  view.begun(yaml(3));
  CHECK(!document(view).contains("experts"));
  for (const char* host : {"home-0", "home-1"}) view.host_started(0s, host);
  const auto tell = [&](duration at, heard_expert what) { view.expert(at, what); };
  tell(0s, {news::held, "home-0", "0.3.1"});
  tell(0s, {news::held, "home-1", "1.0.2"});
  tell(0s, {news::held, "home-1", "not a place"});
  tell(5s, {news::computed, "home-0", "0.3.1", 0, false, 2, 8});
  tell(6s, {news::computed, "home-0", "0.3.1", 1, false, 1, 4});
  tell(10s, {news::copied, "home-0", "0.3.1", 1});
  for (std::uint64_t step = 2; step <= 5; ++step)
    tell(20s, {news::computed, "home-0", "0.3.1", step, false, 1, 4});
  view.host_ended(30s, "home-0", "machine_killed");
  tell(36s, {news::held, "home-1", "0.3.1", 1, true});
  view.metrics_row("40,3,100,1,2.5,,1,1,2,1,1,0,0,0,0,0,0,0,0,0,0\n");
  const auto all = document(view).at("experts");
  CHECK(all.at("hosts") == json::parse(R"(["home-0","home-1"])"));
  REQUIRE(all.at("experts").size() == 2);
  const auto& one = all.at("experts").at(0);
  CHECK(one.at("place") == json::parse("[0,3,1]"));
  CHECK(one.at("rows") == 28);
  CHECK(one.at("requests") == 7);
  CHECK(one.at("steps") == 1); // four were lost with the host
  CHECK(one.at("copied") == 1);
  CHECK(one.at("deaths") == 1);
  CHECK(one.at("revivals") == 1);
  CHECK(one.at("holds") == json::parse("[[0,30,0,false,true,0],[36,null,1,true,false,1]]"));
  CHECK(all.at("most").at(1) == 5);
  CHECK(all.at("most").at(2) == 4);
  const auto at = [&](std::size_t line, double second) {
    const std::string digits = one.at("lines").at(line);
    return digits.at(static_cast<std::size_t>(second / all.at("bin").get<double>()));
  };
  CHECK(at(0, 15) == '0');
  CHECK(at(0, 20) == 'z');
  CHECK(at(1, 25) == 'z');
  CHECK(at(2, 15) == '0');
  CHECK(at(2, 25) == 'z');
  CHECK(at(2, 39) == '0');
}

TEST_CASE("a hundred thousand peers are groups, and the document stays small") {
  constexpr std::uint64_t peers = 100'000;
  run_view view;
  view.begun(yaml(peers));
  for (std::uint64_t i = 0; i < peers; ++i)
    view.host_started(duration(static_cast<std::int64_t>(i) * 1'000'000),
                      fmt::format("home-{}", i));
  for (std::uint64_t i = 0; i < peers; ++i)
    view.phase(200s + duration(static_cast<std::int64_t>(i)), fmt::format("home-{}", i),
               "computing");
  for (int i = 0; i < 30'000; ++i)
    tell_round(
        view, i, 300s + i * 10ms, 4s + i * 1us, i % 3 == 0 ? "failed" : "ok",
        i % 3 == 0 ? "leader_lost" : "none",
        {fmt::format("home-{}", i), fmt::format("home-{}", i + 1), fmt::format("home-{}", i + 2)});
  for (std::uint64_t i = 0; i < 4000; ++i)
    view.contribution(500s, fmt::format("home-{}", i), 1 + i % 7, 1.5);
  for (int i = 0; i < 4000; ++i)
    view.metrics_row(
        fmt::format("{},1,2,3,,,100000,99999,100000,0,0,0,0,0,0,0,0,0,0,0,0\n", 600 + i));
  for (int i = 0; i < 5000; ++i)
    view.fault(1000s + i * 1s, static_cast<std::uint64_t>(i), "pause", true,
               std::vector<std::string>(2000, "home-1"));
  const std::string text = view.document();
  CHECK(text.size() < 2'000'000);
  const json all = json::parse(text);
  CHECK(all["sessions"]["by"] == "group");
  REQUIRE(all["sessions"]["rows"].size() == 1);
  CHECK(all["sessions"]["rows"][0]["hosts"] == peers);
  CHECK(all["participants"]["hosts"].size() + all["participants"]["more"].get<std::size_t>() ==
        peers);
  CHECK(all["rounds"]["total"] == 30'000);
}

TEST_CASE("a name that no scenario has is a row of its own") {
  run_view view;
  view.begun(yaml(2));
  for (const char* name : {"visitor", "home-2", "home-01", "home-", "-", "",
                           "lab-99999999999999999999", "relay.harbour"}) {
    view.host_started(1s, name);
    view.contribution(2s, name, 1, 1);
  }
  const json people = document(view)["participants"];
  CHECK(people["hosts"].size() == 8);
}

TEST_CASE("lines are not called idle from where on transfers were not recorded any more") {
  run_view view;
  view.begun(yaml(2) + "record: {transfers: 2}\n");
  view.host_started(0s, "home-0");
  view.host_started(0s, "home-1");
  // 1.25 MB in a second is all that 10 Mbit can carry.
  view.transfer({1, "home-0", "home-1", "part_chunk", 1'250'000, 0s, 0s, 1s, 1s, false,
                 "uplink of home-0", 1s});
  CHECK(document(view)["links"]["until"].is_null());
  CHECK(document(view)["rounds"]["transfers_until"].is_null());
  view.transfer({2, "home-0", "home-1", "part_chunk", 1'250'000, 1s, 1s, 2s, 2s, false,
                 "uplink of home-0", 1s});
  view.host_ended(1000s, "home-1", "left");
  const json all = document(view);
  CHECK(all["rounds"]["transfers_until"] == 2.0);
  CHECK(all["links"]["until"] == 2.0);
  CHECK(all["links"]["rows"][0]["name"] == "uplink of home-0");
  CHECK(all["links"]["rows"][0]["mean"].get<double>() == doctest::Approx(1));
  CHECK(all["links"]["bins"].get<double>() * all["links"]["bin"].get<double>() <
        2.0 + all["links"]["bin"].get<double>() + 1e-9);
  CHECK(all["links"]["rows"][0]["use"].get<std::string>().size() ==
        all["links"]["bins"].get<std::size_t>());
}

TEST_CASE("a view has the traffic between regions over time with the delays between them") {
  run_view view;
  std::string text = yaml(2);
  const std::string regions = "regions: [eu, us]";
  text.replace(text.find(regions), regions.size(),
               regions + ", default_delay: 30ms, links: [{from: us, to: eu, delay: 80ms}]");
  view.begun(text);
  CHECK(document(view)["flows"].is_null());
  view.host_started(0s, "home-0");
  view.host_started(0s, "lab-1");
  view.transfer({1, "home-0", "lab-1", "part_chunk", 1000, 1s, 1s, 3s, 3s, false, "", 0s});
  view.transfer({2, "lab-1", "home-0", "part_chunk", 500, 3s, 3s, 4s, 4s, false, "", 0s});
  view.transfer({3, "lab-1", "home-0", "part_chunk", 9000, 3s, 3s, 4s, 4s, true, "", 0s});
  view.transfer({4, "stranger", "home-0", "part_chunk", 9000, 3s, 3s, 4s, 4s, false, "", 0s});
  const json flows = document(view)["flows"];
  CHECK(flows["regions"] == json{"eu", "us"});
  CHECK(flows["delays"] == json::parse("[[0.03,0.08],[0.08,0.03]]"));
  REQUIRE(flows["pairs"].size() == 2);
  const json& there = flows["pairs"][0];
  CHECK((there["from"] == 0 && there["to"] == 1 && there["bytes"] == 1000));
  CHECK(flows["pairs"][1]["bytes"] == 500);
  // The line is full from the first second to the third, and empty before and after.
  const std::string line = there["line"];
  const double bin = flows["bin"];
  CHECK(static_cast<double>(line.find('z')) * bin == doctest::Approx(1).epsilon(0.05));
  CHECK(static_cast<double>(line.size()) * bin == doctest::Approx(3).epsilon(0.05));
}

TEST_CASE("the samples of each host over time add up to its contribution") {
  run_view view;
  view.begun(yaml(2));
  view.host_started(0s, "home-0");
  view.host_started(0s, "home-1");
  for (int i = 1; i <= 100; ++i) view.contribution(i * 10s, "home-1", 3, 1.0);
  view.contribution(500s, "home-0", 7, std::nan(""));
  const json growth = document(view)["growth"];
  REQUIRE(growth["rows"].size() == 2);
  CHECK(growth["rows"][0]["name"] == "home-1");
  std::int64_t sum = 0, half = 0;
  const json& samples = growth["rows"][0]["samples"];
  for (std::size_t i = 0; i < samples.size(); ++i) {
    sum += samples[i].get<std::int64_t>();
    if (static_cast<double>(i + 1) * growth["bin"].get<double>() <= 500)
      half += samples[i].get<std::int64_t>();
  }
  CHECK(sum == 300);
  CHECK(half == doctest::Approx(150).epsilon(0.05));
  CHECK(growth["rows"][1]["name"] == "home-0");
  CHECK(growth["rows"][1]["samples"].back() == 7);
}

TEST_CASE("a view has the newest arrivals and ends and forgets older ones") {
  run_view view;
  view.begun(yaml(100));
  for (int i = 0; i < 100; ++i) view.host_started((i + 1) * 1s, fmt::format("home-{}", i));
  view.host_ended(200s, "home-3", "machine_killed");
  const json latest = document(view)["latest"];
  REQUIRE(latest.size() == 30);
  CHECK(latest.front() == json{72, "home-71", ""});
  CHECK(latest.back() == json{200, "home-3", "machine_killed"});
}

TEST_CASE("a round whose members all died has no time below nothing") {
  run_view view;
  view.begun(yaml(2));
  tell_round(view, 0, 10s, 2s, "ok", "none", {"home-0", "home-1"});
  view.round({group(1), 1, 20s, 0s, 2, "failed", "sender_lost", false, 0});
  const json rounds = document(view)["rounds"];
  REQUIRE(rounds["points"].size() == 2);
  CHECK(rounds["points"][0][2] == 2.0);
  CHECK(rounds["points"][1][1] == 20.0);
  CHECK(rounds["points"][1][2] == 0.0);
}

TEST_CASE(
    "a view has a case for each accused member, with the proof and the hosts that banned it") {
  run_view view;
  view.begun(yaml(2));
  CHECK(document(view)["cases"]["total"] == 0);
  view.case_event({3s, "lab-1", case_what::accused, "home-0", "a false <vote>", ""});
  view.case_event({4s, "lab-1", case_what::proven, "home-0", "two votes in one round", ""});
  view.case_event({4s, "lab-1", case_what::banned, "home-0", "two votes in one round", "vote ab"});
  view.case_event({5s, "lab-1", case_what::banned, "home-1", "two votes in one round", "vote ab"});
  view.case_event({6s, "lab-1", case_what::round, "", "epoch 2: failed, no_majority", ""});
  const auto seen = document(view);
  CHECK(seen["run"]["time"] == 6);
  CHECK(seen["cases"]["total"] == 1);
  const auto one = seen["cases"]["rows"][0];
  CHECK((one["number"] == 1 && one["member"] == "lab-1" && one["begun"] == 3));
  CHECK((one["deed"] == "two votes in one round" && one["proof"] == "vote ab"));
  CHECK(one["accusations"][0]["why"] == "a false <vote>");
  CHECK(one["bans"]["count"] == 2);
  CHECK(one["bans"]["first"][1] == json::array({5, "home-1"}));
  CHECK(one["rounds"]["last"][0] == json::array({6, "epoch 2: failed, no_majority"}));
}

TEST_CASE("a view has the rounds of a guard with each name once") {
  run_view view;
  view.begun(yaml(2));
  CHECK(document(view)["guard"]["rounds"].empty());
  guarded_round what;
  what.at = 3s;
  what.group = "ab";
  what.epoch = 31;
  what.committed = 4;
  what.audits = {{"home-0", "lab-1", "wrong"}};
  what.accusations = {{"home-0", "lab-1", "gradient"}};
  what.distances = {{"home-0", 0.5}, {"lab-1", std::nan("")}};
  view.guarded_round(what);
  what.verdicts = {{"lab-1", "gradient"}};
  view.guarded_round(what);
  const auto seen = document(view)["guard"];
  CHECK(seen["names"] == json::array({"home-0", "lab-1"}));
  REQUIRE(seen["rounds"].size() == 1);
  const auto one = seen["rounds"][0];
  CHECK((one["at"] == 3 && one["epoch"] == 31 && one["committed"] == 4));
  CHECK(one["audits"][0] == json::array({0, 1, "wrong"}));
  CHECK(one["accusations"][0] == json::array({0, 1, "gradient"}));
  CHECK(one["verdicts"][0] == json::array({1, "gradient"}));
  CHECK(one["distances"] == json::parse("[[0,0.5],[1,null]]"));
}

TEST_CASE("a view has what a model drew after each checkpoint and of many pictures the last one") {
  const scratch_folder here;
  run_view view;
  view.begun("workload: {kind: dalle, show: [red heart, sun]}\n");
  CHECK(document(view)["pictures"]["drawn"].empty());
  for (int i = 1; i <= 50; ++i) here.write(fmt::format("epoch-{}.png", 10 * i), "abcd");
  here.write("epoch-5.png.partial", "half");
  here.write("other.png", "abcd");
  view.pictures_from(here.path);
  const auto seen = document(view)["pictures"];
  CHECK(seen["captions"] == json{"red heart", "sun"});
  CHECK(seen["drawn"].size() == 17);
  CHECK(seen["drawn"][0]["epoch"] == 20);
  CHECK(seen["drawn"].back() == json{{"epoch", 500}, {"png", "data:image/png;base64,YWJjZA=="}});
  view.begun(yaml(2));
  CHECK(!document(view).contains("pictures"));
}
