// Swarms with peers behind address translation: with and without a relay, and with one that has run
// dry.
#include "actors/averaging/observations.hpp"
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

using namespace shoal;
using namespace shoal::e2e;

namespace {

/// `open` peers, two cones, one symmetric and one outbound only, in epochs of about a second.
swarm behind_nat(unsigned open, const std::string& relays = "") {
  swarm what;
  what.peers = open;
  what.epochs = 10;
  what.late =
      "  cone: {count: 2, up: 1Mbit, down: 4Mbit, device: fast, start_spacing: 10ms, nat: cone}\n"
      "  sym: {count: 1, up: 1Mbit, down: 4Mbit, device: fast, nat: symmetric}\n"
      "  out: {count: 1, up: 1Mbit, down: 4Mbit, device: fast, nat: outbound_only}\n";
  what.more_network = relays;
  return what;
}

finished_run run(const swarm& what, std::set<std::string>& contributed) {
  scenarios::runner_options options;
  options.on_observation = [&](const actors::host& from, const actors::observation& what) {
    if (const auto* c = actors::get_if<actors::contributed>(&what); c && c->weight > 0)
      contributed.insert(std::string(from.name()));
  };
  return run_swarm(what, std::move(options));
}

} // namespace

TEST_CASE("two open peers and four behind address translation train without a relay, and all "
          "contribute") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    auto what = behind_nat(2);
    what.seed = seed;
    std::set<std::string> contributed;
    const auto ran = run(what, contributed);
    INFO(ran.text(what.yaml()));
    CHECK(ran.errors.empty());
    CHECK(contributed.size() == 6);
    CHECK(ran.summary().rounds.ok >= 10);
    CHECK(ran.summary().rounds.failed == 0);
    CHECK(ran.summary().rounds.partial + ran.summary().rounds.split == 0);
    CHECK(*ran.summary().loss.final < 0.2 * *ran.summary().loss.first);
    const auto& reach = *ran.summary().reachability;
    CHECK(reach.wrong == 0);
    CHECK(reach.open == 2);
    CHECK(reach.cone == 2);
    CHECK(reach.symmetric == 1);
    CHECK(reach.outbound_only == 1);
    CHECK(reach.relayed_bytes == 0);
    CHECK(reach.relay_spent == 0);
  }
}

TEST_CASE("the only open peer learns from the data shard that it is one, and all train with it") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    auto what = behind_nat(1);
    what.seed = seed;
    what.epochs = 30;
    std::set<std::string> contributed;
    const auto ran = run(what, contributed);
    INFO(ran.text(what.yaml()));
    CHECK(ran.errors.empty());
    CHECK(contributed.size() == 5);
    CHECK(ran.summary().rounds.ok >= 10);
    CHECK(ran.summary().reachability->open == 1);
    CHECK(ran.summary().reachability->wrong == 0);
  }
}

TEST_CASE("a relay lets every pair talk, and carries only what nothing else can") {
  const auto what = behind_nat(2, ", relays: {a: {budget: 1GB}}");
  std::set<std::string> contributed;
  const auto ran = run(what, contributed);
  INFO(ran.text(what.yaml()));
  CHECK(ran.errors.empty());
  CHECK(contributed.size() == 6);
  // Peers that know their reachability first may wait in vain for the others, which are still
  // asking.
  CHECK(ran.summary().rounds.failed <= 1);
  const auto& reach = *ran.summary().reachability;
  CHECK(reach.wrong == 0);
  CHECK(reach.no_relay + reach.relay_spent == 0);
  CHECK(reach.direct + reach.reversed > 0);
  CHECK(reach.punched + reach.relayed > 0);
}

TEST_CASE("a relay that has spent its budget is as good as none, and training goes on") {
  const auto what = behind_nat(2, ", hole_punching: 0, relays: {a: {budget: 200kB}}");
  std::set<std::string> contributed;
  const auto ran = run(what, contributed);
  INFO(ran.text(what.yaml()));
  CHECK(ran.errors.empty());
  CHECK(contributed.size() == 6);
  const auto& reach = *ran.summary().reachability;
  CHECK(reach.relayed_bytes <= 200'000);
  CHECK(reach.relayed_bytes > 100'000);
  CHECK(reach.relay_spent > 0);
}

TEST_CASE("peers that all only dial out end their rounds with a reason when there is no relay") {
  auto what = behind_nat(2);
  what.stop_time = "60s";
  for (auto& [from, to] :
       {std::pair{"nat: cone", "nat: outbound_only"}, {"nat: symmetric", "nat: outbound_only"}})
    what.late.replace(what.late.find(from), std::string(from).size(), to);
  what.open = "nat: outbound_only";
  what.epochs = 0;
  std::set<std::string> contributed;
  const auto ran = run(what, contributed);
  INFO(ran.text(what.yaml()));
  CHECK(ran.errors.empty());
  CHECK(ran.summary().epochs == 0);
  CHECK(ran.summary().rounds.failed > 0);
  CHECK(ran.reason("no_reducer") >= 6);
  CHECK(ran.summary().peers.alive == 6);
  CHECK(ran.summary().reachability->no_relay > 0);
}

TEST_CASE("all behind symmetric translation train by a relay alone") {
  swarm what;
  what.peers = 4;
  what.open = "nat: symmetric";
  what.more_network = ", relays: {a: {budget: 1GB}}";
  std::set<std::string> contributed;
  const auto ran = run(what, contributed);
  INFO(ran.text(what.yaml()));
  CHECK(ran.errors.empty());
  CHECK(contributed.size() == 4);
  CHECK(ran.summary().reachability->relayed_bytes > 500'000);
  CHECK(ran.summary().reachability->punched == 0);
}

TEST_CASE("kills of open and other peers in the middle of a round are survived behind address "
          "translation") {
  for (const char* victim : {"p-0", "cone-0", "out-0"}) {
    auto what = behind_nat(3);
    what.faults = {std::string("{kill: machine, select: ") + victim +
                   ", on: all_reduce.half_sent, nth: 3}"};
    std::set<std::string> contributed;
    const auto ran = run(what, contributed);
    INFO(ran.text(what.yaml()));
    CHECK(ran.errors.empty());
    CHECK(ran.summary().peers.alive == 6);
  }
}

TEST_CASE("one seed gives one history behind address translation, too") {
  const auto what = behind_nat(2, ", relays: {a: {budget: 200kB}}");
  std::set<std::string> contributed;
  CHECK(run(what, contributed).summary().event_hash == run(what, contributed).summary().event_hash);
}

TEST_CASE("a swarm under churn goes on when the peer with the leading state cannot be dialled") {
  for (std::uint64_t seed : {2, 5}) {
    swarm what;
    what.seed = seed;
    what.peers = 3;
    what.stop_time = "4min";
    const auto churn = [](const char* mean) {
      return std::string("churn: {session: {distribution: exponential, mean: ") + mean +
             "}, gap: {distribution: exponential, mean: 5s}}";
    };
    what.open = churn("60s");
    what.late = "  cone: {count: 4, up: 1Mbit, down: 4Mbit, device: fast, nat: cone, " +
                churn("40s") + "}\n" +
                "  sym: {count: 2, up: 1Mbit, down: 4Mbit, device: fast, nat: symmetric, " +
                churn("40s") + "}\n" +
                "  out: {count: 2, up: 1Mbit, down: 4Mbit, device: fast, nat: outbound_only}\n";
    what.epochs = 40;
    std::set<std::string> contributed;
    const auto ran = run(what, contributed);
    INFO(ran.text(what.yaml()));
    CHECK(ran.errors.empty());
    CHECK(contributed.size() == 11);
  }
}

TEST_CASE("open newcomers get the state from peers that they cannot dial") {
  auto what = behind_nat(2);
  what.epochs = 30;
  what.stop_time = "100s"; // before anybody asks again who it is
  what.late += "  new: {count: 2, up: 1Mbit, down: 4Mbit, device: fast, absent: true}\n";
  what.faults = {"{kill: process, select: \"p-*\", at: 20s}",
                 "{join: host, select: \"new-*\", at: 30s}"};
  std::set<std::string> contributed;
  const auto ran = run(what, contributed);
  INFO(ran.text(what.yaml()));
  CHECK(ran.errors.empty());
  CHECK(contributed.contains("new-0"));
}
