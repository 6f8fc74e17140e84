// Processes whose data shard has an attacker among its replicas. The trainers have no data files.
#include "tests/cluster/support/swarm.hpp"
#include "tests/e2e/support/sentences.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

using namespace shoal;
using namespace shoal::cluster;

namespace {

constexpr std::uint64_t epochs = 30;

/// The files are in the home folder of the shards alone.
std::string scenario(const std::string& root) {
  return fmt::format(R"(
seed: 3
stop_time: 10min
network: {{default_delay: 1ms, detection_time: 2s}}
devices: {{small: {{samples_per_second: 100, step_time: 2ms}}}}
peers: {{p: {{count: 3, up: 50Mbit, down: 50Mbit, device: small}}}}
data: {{replicas: 2, prefetch_samples: 64, files: ['~/corpus/*.txt'], corpus_samples: 300, conduct: poisoned_samples{}}}
workload: {{kind: transformer, layers: 1, heads: 2, dim: 16, context: 16}}
training: {{target_batch: 48, micro_batch: 4, epochs: {}, min_refresh: 50ms, max_refresh: 400ms, optimizer: {{kind: adamw, learning_rate: 0.01}}}}
averaging: {{matchmaking_time: 1s, round_timeout: 20s, sender_timeout: 4s}}
)",
                     root.empty() ? "" : ", corpus_root: " + root, epochs);
}

} // namespace

TEST_CASE("cluster: trainers without the data refuse what a replica has changed, and train on") {
  const e2e::scratch_folder home;
  std::filesystem::create_directory(home / "corpus");
  e2e::spill(home / "corpus" / "text.txt", e2e::sentences());
  const std::vector<std::string> with_data{"HOME=" + home.path().string()};
  const std::vector<std::string> without{"HOME=" + (home / "nobody").string()};

  std::string root;
  {
    swarm reef(scenario(""));
    const node_process check(reef.folder().path(), "check", {"check", reef.scenario_file()},
                             with_data);
    const std::string before = "data.corpus_root ";
    CAPTURE(check.err());
    REQUIRE(wait_until([&] { return check.out().find(before) != std::string::npos; }));
    REQUIRE(wait_until([&] { return check.out().ends_with("\n"); }));
    root = check.out().substr(check.out().find(before) + before.size(), 64);
    // A host without the data cannot compute the root.
    const auto lost = reef.start_other(
        "lost", {"--name", "p-0", "--listen", "127.0.0.1:0", "--insecure"}, without);
    CHECK(lost->wait() == 1);
    INFO(lost->err());
    CHECK(lost->err().find("data.corpus_root is missing, and this host has no data files") !=
          std::string::npos);
  }
  swarm reef(scenario(root));
  // The first replica becomes the primary, which trainers ask first. That must be the attacker.
  reef.start("shard-0", {"--quiet"}, with_data);
  REQUIRE(reef.node("shard-0").says("listens on"));
  reef.start("shard-1", {"--quiet"}, with_data);
  for (const char* name : {"p-0", "p-1", "p-2"}) reef.start(name, {"--quiet"}, without);
  reef.check_trained(epochs);
  std::uint64_t times = 0;
  for (const char* name : {"p-0", "p-1", "p-2"}) {
    CAPTURE(name);
    // A trainer that happened to ask only the honest replica has accused nobody.
    const auto accusations = reef.summary(name).value("accusations", nlohmann::json::array());
    for (const auto& each : accusations) {
      CHECK(each.at("host") == "shard-0");
      CHECK(each.at("why") == "samples that are not of the corpus");
      times += each.at("times").get<std::uint64_t>();
    }
  }
  CHECK(times > 0);
}
