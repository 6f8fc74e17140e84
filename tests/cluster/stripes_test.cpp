// Real processes whose bulk has several connections (network.tcp.connections), with TLS.
#include "tests/cluster/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>

using namespace shoal;
using namespace shoal::cluster;

namespace {

std::string scenario(unsigned connections) {
  return fmt::format(R"(
seed: 3
stop_time: 10min
network: {{default_delay: 1ms, detection_time: 2s, tcp: {{connections: {}}}}}
devices: {{small: {{samples_per_second: 60, step_time: 2ms}}}}
peers: {{p: {{count: 3, up: 50Mbit, down: 50Mbit, device: small}}}}
data: {{prefetch_samples: 64, lease_time: 30s}}
workload: {{kind: quadratic, parameters: 40000}}
training: {{target_batch: 64, micro_batch: 4, epochs: 12, min_refresh: 50ms, max_refresh: 400ms, optimizer: {{kind: adamw, learning_rate: 0.01}}}}
averaging: {{matchmaking_time: 1s, round_timeout: 20s, sender_timeout: 4s}}
)",
                     connections);
}

const std::vector<std::string> all{"p-0", "p-1", "p-2", "shard-0"};

} // namespace

TEST_CASE("processes train with several connections for bulk, and one is killed and comes back") {
  swarm reef(scenario(4));
  for (const auto& name : all) reef.start(name, {"--quiet"});
  const auto epoch = [&](const std::string& name) { return reef.metrics(name)["shoal_epoch"]; };
  REQUIRE(wait_until([&] { return epoch("p-1") >= 2; }));
  // A link has one connection for control and four for bulk. The shard has links with all peers.
  const auto sockets = reef.node("shard-0").open_sockets();
  CHECK(sockets >= 3 * 5);
  reef.node("p-2").signal(SIGKILL);
  REQUIRE(reef.node("p-2").wait() == 1000 + SIGKILL);
  reef.restart("p-2");
  reef.check_trained(12);
  CHECK(reef.summary("p-0").at("rounds").at("ok").get<int>() > 0);
}

TEST_CASE("a host with another number of connections is told so") {
  swarm reef(scenario(1));
  reef.start("p-0", {"--quiet"});
  const auto other = reef.start_other(
      "other", {"--quiet", "--name", "p-1", "--keys", reef.keys_of("p-1"), "--listen",
                "127.0.0.1:0", "--join", reef.address_of("p-0"), "--set",
                "network.tcp.connections=4", "--out", (reef.folder() / "out-other").string()});
  CHECK(other->wait() == 3);
  CHECK_MESSAGE(other->err().find("other_scenario, it runs another scenario: "
                                  "network.tcp.connections is not set there and 4 here") !=
                    std::string::npos,
                other->err());
}
