// Processes of a training swarm are killed at the worst moment, stopped, and cut off. The others
// train on, no epoch is lost, and a process that returns contributes again.
#include "actors/data/sample_ledger.hpp"
#include "actors/probes.hpp"
#include "kernels/base/interval_map.hpp"
#include "scenarios/record/verify_data.hpp"
#include "scenarios/runner/node.hpp"
#include "tests/cluster/support/swarm.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <random>

using namespace shoal;
using namespace shoal::cluster;

namespace {

/// The time limit for the start of a process. On a machine that compiles at the same time, loading
/// the libraries was seen to take half a minute.
constexpr auto slow_patience = 4 * patience;

/// A round takes about a second, as does a download of the state, so that both can be interrupted.
std::string scenario(std::uint64_t epochs, unsigned peers, unsigned shards) {
  return fmt::format(R"(
seed: 3
stop_time: 60min
network: {{default_delay: 1ms, detection_time: 2s}}
devices: {{small: {{samples_per_second: 60, step_time: 2ms}}}}
peers: {{p: {{count: {}, up: 3Mbit, down: 50Mbit, device: small}}}}
data: {{replicas: {}, prefetch_samples: 64, lease_time: 30s}}
workload: {{kind: quadratic, parameters: 40000}}
training: {{target_batch: 64, micro_batch: 4, epochs: {}, min_refresh: 50ms, max_refresh: 400ms, optimizer: {{kind: adamw, learning_rate: 0.01}}}}
averaging: {{matchmaking_time: 1s, round_timeout: 20s, sender_timeout: 4s}}
record: {{metrics_interval: 20ms}}
)",
                     peers, shards, epochs);
}

std::string point(std::string_view which) {
  return fmt::format("shoal_points_reached_total{{point=\"{}\"}}", which);
}
const std::string sends_state = "shoal_sent_bytes_total{kind=\"state\"}",
                  sends_data = "shoal_sent_bytes_total{kind=\"data\"}",
                  rounds_ok = "shoal_rounds_total{outcome=\"ok\"}",
                  rounds_partial = "shoal_rounds_total{outcome=\"partial\"}";

/// The processes of a swarm by name, and the actions on them.
class survivors {
public:
  survivors(std::uint64_t epochs, unsigned peers, unsigned shards)
      : reef_(scenario(epochs, peers, shards)), epochs_(epochs) {
    for (unsigned i = 0; i < peers; ++i) peers_.push_back(fmt::format("p-{}", i));
    for (unsigned i = 0; i < shards; ++i) shards_.push_back(fmt::format("shard-{}", i));
    reef_.join_via({peers_[0], peers_[1]});
    for (const auto* group : {&peers_, &shards_})
      for (const auto& name : *group) reef_.start(name, {"--quiet"});
    REQUIRE(wait_until([&] { return epoch_of(peers_[0]) >= 2; }, slow_patience));
  }

  swarm& reef() { return reef_; }
  const std::vector<std::string>& peers() const { return peers_; }
  const std::vector<std::string>& shards() const { return shards_; }
  double epoch_of(const std::string& name) { return reef_.metrics(name)["shoal_epoch"]; }

  /// Waits until the series rises at one of `whom`, and returns that process.
  std::string first_with_more(const std::string& series, const std::vector<std::string>& whom) {
    std::map<std::string, double> before;
    for (const auto& name : whom) before[name] = reef_.metrics(name)[series];
    std::string out;
    const bool rose = wait_until(
        [&] {
          for (const auto& name : whom)
            if (reef_.metrics(name)[series] > before[name]) {
              out = name;
              return true;
            }
          return false;
        },
        slow_patience);
    REQUIRE_MESSAGE(rose, series);
    return out;
  }

  void kill(const std::string& name) {
    CAPTURE(name);
    CAPTURE(reef_.node(name).err());
    REQUIRE(reef_.node(name).running());
    reef_.node(name).signal(SIGKILL);
    REQUIRE(reef_.node(name).wait() == 1000 + SIGKILL);
  }
  void restart(const std::string& name) { reef_.restart(name); }

  /// True if a process does its part: a peer completes rounds; a shard has links to all peers that
  /// are up.
  bool takes_part(const std::string& name) {
    auto seen = reef_.metrics(name);
    if (!name.starts_with("shard")) return seen[rounds_ok] + seen[rounds_partial] >= 1;
    const auto here = std::count_if(peers_.begin(), peers_.end(),
                                    [&](const auto& peer) { return reef_.node(peer).running(); });
    return seen["shoal_links_open"] >= static_cast<double>(here);
  }
  void wait_for_part(const std::string& name) {
    CAPTURE(name);
    CHECK_MESSAGE(wait_until([&] { return takes_part(name); }, slow_patience),
                  reef_.node(name).err());
  }
  /// Waits until the others have trained on.
  void wait_for_epochs(const std::string& name, double more) {
    CAPTURE(name);
    const auto before = epoch_of(name);
    CHECK_MESSAGE(wait_until([&] { return epoch_of(name) >= before + more; }, slow_patience),
                  reef_.node(name).err());
  }

  /// Checks that all processes end well and that their records agree. Every epoch was stepped to,
  /// killed peers contributed again, and no sample was used twice unreported.
  void check_all() {
    REQUIRE_MESSAGE(epoch_of(peers_[0]) < static_cast<double>(epochs_),
                    "all of it has to happen while they train");
    REQUIRE(wait_until(
        [&] {
          return !reef_.node(peers_[0]).running() ||
                 epoch_of(peers_[0]) + 10 >= static_cast<double>(epochs_);
        },
        20min));
    reef_.check_trained(epochs_);
    std::string rounds;
    for (const auto& name : peers_) {
      CAPTURE(name);
      const auto own = e2e::slurp(std::filesystem::path(reef_.out_of(name)) / "rounds.csv");
      const auto first_line = own.find('\n') + 1;
      rounds += rounds.empty() ? own : own.substr(first_line);
      CHECK(own.size() > first_line);
      const auto done = reef_.summary(name).at("rounds");
      CHECK(done.at("ok").get<int>() + done.at("partial").get<int>() >= 1);
    }
    for (const auto& name : shards_) {
      CAPTURE(name);
      std::ifstream ledger(std::filesystem::path(reef_.out_of(name)) / "ledger.csv");
      std::istringstream used(rounds);
      // Only the ledger of a killed process knows which samples it used. The ledger must know the
      // samples that the others report.
      for (const auto& error : scenarios::verify_data(ledger, used).errors)
        if (error.find("no such round used them") == std::string::npos) FAIL_CHECK(error);
    }
    check_used_once(rounds);
  }

private:
  static void check_used_once(const std::string& rounds) {
    interval_set used;
    std::istringstream in(rounds);
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      std::uint64_t first = 0, count = 0;
      int parts = 0;
      REQUIRE(std::sscanf(line.c_str(), "%*[^,],%*[^,],%*[^,],%lu,%lu,%d", &first, &count,
                          &parts) == 3);
      if (parts == 0) continue;
      CAPTURE(line);
      CHECK(used.pieces(first, first + count).empty());
      used.insert(first, first + count);
    }
  }

  swarm reef_;
  const std::uint64_t epochs_;
  std::vector<std::string> peers_, shards_;
};

} // namespace

TEST_CASE("processes of a shard that start later have higher index blocks, and no two the same") {
  using scenarios::index_block_of;
  const auto now = swarm::utc_ns();
  CHECK(index_block_of(now, 0) < index_block_of(now, 1));
  CHECK(index_block_of(now, 15) < index_block_of(now + 2'500'000'000, 0));
  CHECK(index_block_of(now, 0) > 0); // a process with number 0 asks nobody
  CHECK(index_block_of(0, 0) > 0);   // nor does one with a wrong clock
  CHECK(index_block_of(now, 15) <
        std::numeric_limits<std::uint64_t>::max() / actors::index_block_size);
}

TEST_CASE("processes of a shard get ascending index blocks until the year 2100") {
  using scenarios::index_block_of;
  // 2026-01-02, 2028-02-16, 2028-03-01, 2040-01-01, 2060-01-01, 2099-12-31
  const std::vector<std::int64_t> days{1'767'312'000, 1'834'272'000, 1'835'481'600,
                                       2'208'988'800, 2'840'140'800, 4'102'358'400};
  std::uint64_t last = 0;
  for (const auto day : days) {
    CAPTURE(day);
    const auto utc_ns = day * 1'000'000'000;
    CHECK(index_block_of(utc_ns, 0) > last);
    last = index_block_of(utc_ns, 15);
    CHECK(last < index_block_of(utc_ns + 2'500'000'000, 0));
    // The indices of the block have 64 bits.
    CHECK(last < std::numeric_limits<std::uint64_t>::max() / actors::index_block_size);
    // A process that waits does not share its block with a later one.
    const auto begins = utc_ns + scenarios::shard_start_delay(utc_ns).count();
    CHECK(last < index_block_of(begins, 0));
    CHECK(begins - utc_ns <= 2'500'000'000);
    CHECK(index_block_of(begins - 1, 15) == last);
  }
}

TEST_CASE("a bootstrap and a leader and a reducer and a donor and the owner of the shard are "
          "killed in their moment and come back") {
  SHOAL_NIGHTLY();          // the test waits for moments that cannot be forced
  survivors all(100, 5, 2); // the strikes take thirty epochs, and more if processes start slowly
  const auto strike = [&](const std::string& what, const std::string& series,
                          const std::vector<std::string>& whom) {
    const auto name = all.first_with_more(series, whom);
    all.kill(name);
    MESSAGE(what << ": " << name << " at epoch " << all.epoch_of(name == "p-4" ? "p-3" : "p-4"));
    return name;
  };
  const auto and_back = [&](const std::string& name) {
    all.restart(name);
    all.wait_for_part(name);
  };
  and_back(strike("bootstrap", point(actors::probes::first_part_sent), {"p-0"}));
  and_back(strike("leader", point(actors::probes::matchmaking_led), all.peers()));
  // The killed process downloads the state, and then its donor is killed.
  const auto reducer = strike("reducer", point(actors::probes::half_replied), all.peers());
  all.restart(reducer);
  const auto donor = strike("donor", sends_state, all.peers());
  and_back(donor);
  all.wait_for_part(reducer);
  // The other replica takes over. When that one is killed, the first replica takes over again.
  const auto owner = strike("owner of the shard", sends_data, all.shards());
  and_back(owner);
  const auto heir = strike("its heir", sends_data, all.shards());
  CHECK(heir != owner);
  and_back(heir);
  CHECK(all.first_with_more(sends_data, all.shards()) == owner);
  all.check_all();
}

TEST_CASE("a data shard without a replica is killed and comes back and hands out other samples "
          "than before") {
  survivors all(40, 2, 1);
  const auto data = all.first_with_more(sends_data, all.shards());
  all.kill(data);
  all.restart(data);
  all.wait_for_epochs("p-0", 4);
  all.check_all();
}

TEST_CASE(
    "the shard outlives the restart of the only peer and ends when the peer leaves for good") {
  swarm reef(scenario(1000, 1, 1));
  reef.join_via({"p-0"});
  for (const char* name : {"p-0", "shard-0"}) reef.start(name, {"--quiet"});
  const auto trains = [&] {
    return wait_until([&] { return reef.metrics("p-0")["shoal_epoch"] >= 2; }, slow_patience);
  };
  REQUIRE_MESSAGE(trains(), reef.node("p-0").err());
  reef.node("p-0").signal(SIGTERM);
  CHECK(reef.node("p-0").wait() == 130);
  CHECK_MESSAGE(wait_until([&] {
                  return reef.node("shard-0").says(
                      "everybody has left; it ends in 10s unless somebody comes");
                }),
                reef.node("shard-0").err());
  reef.restart("p-0");
  CHECK_MESSAGE(trains(), reef.node("p-0").err());
  CHECK(reef.node("shard-0").running());
  reef.node("p-0").signal(SIGTERM);
  CHECK(reef.node("shard-0").wait() == 0);
}

TEST_CASE("a peer that everybody has left says so and ends and keeps its files") {
  swarm reef(scenario(1000, 1, 1));
  for (const char* name : {"p-0", "shard-0"}) reef.start(name, {"--quiet"});
  auto& peer = reef.node("p-0");
  REQUIRE_MESSAGE(
      wait_until([&] { return reef.metrics("p-0")["shoal_epoch"] >= 2; }, slow_patience),
      peer.err());
  reef.node("shard-0").signal(SIGTERM);
  CHECK(reef.node("shard-0").wait() == 130);
  CHECK_MESSAGE(peer.says("everybody has left; it ends in 10s unless somebody comes"), peer.err());
  CHECK(peer.wait() == 3);
  const auto result = reef.summary("p-0");
  REQUIRE(result.is_object());
  const auto epochs = result.at("epochs").get<std::uint64_t>();
  CHECK(epochs >= 2);
  CHECK_MESSAGE(peer.err().find(fmt::format("error: everybody has left, and this host is at epoch "
                                            "{}: start it again when others are there",
                                            epochs)) != std::string::npos,
                peer.err());
}

TEST_CASE("thirty kills at random moments and a minute of standstill lose no epoch") {
  SHOAL_NIGHTLY();
  const auto seed = std::random_device{}();
  const auto again = std::getenv("SHOAL_SEED");
  std::mt19937 random(again != nullptr ? static_cast<unsigned>(std::stoul(again)) : seed);
  MESSAGE("SHOAL_SEED=" << (again != nullptr ? std::string(again) : std::to_string(seed)));
  // Thirty kills with their waits take 400 epochs and more.
  constexpr std::uint64_t epochs = 700;
  survivors all(epochs, 5, 2);
  const auto below = [&](unsigned count) { return static_cast<unsigned>(random() % count); };
  struct moment {
    std::string what, series;
    std::vector<std::string> whom;
  };
  const moment moments[] = {{"bootstrap", point(actors::probes::training_step), {"p-0", "p-1"}},
                            {"leader", point(actors::probes::matchmaking_led), all.peers()},
                            {"reducer", point(actors::probes::half_replied), all.peers()},
                            {"donor", sends_state, all.peers()},
                            {"owner of the shard", sends_data, all.shards()}};
  // A few processes may be down at once, as long as the state and the ledger survive.
  std::map<std::string, std::chrono::steady_clock::time_point> away;
  const auto bring_back = [&](bool everybody) {
    for (auto at = away.begin(); at != away.end();) {
      if (!everybody && at->second > std::chrono::steady_clock::now()) {
        ++at;
        continue;
      }
      all.restart(at->first);
      all.wait_for_part(at->first);
      at = away.erase(at);
    }
  };
  const auto here = [&](std::vector<std::string> whom) {
    std::erase_if(whom, [&](const std::string& name) { return away.contains(name); });
    return whom;
  };
  for (int i = 0; i < 30; ++i) {
    bring_back(false);
    const auto& chosen = moments[below(std::size(moments))];
    const bool of_shard = chosen.whom == all.shards();
    const auto peers_away = std::count_if(
        away.begin(), away.end(), [](const auto& each) { return each.first.starts_with("p-"); });
    if (here(chosen.whom).empty() || (of_shard && here(chosen.whom).size() < 2) || peers_away > 1)
      bring_back(true);
    // A state is sent when a process joins without it.
    if (chosen.what == "donor") {
      const auto joiner = all.peers()[2 + below(3)];
      if (away.contains(joiner)) bring_back(true);
      all.kill(joiner);
      all.restart(joiner);
    }
    const auto name = all.first_with_more(chosen.series, here(chosen.whom));
    // The random moment is the point of the test.
    std::this_thread::sleep_for(std::chrono::milliseconds(below(400)));
    all.kill(name);
    const std::chrono::milliseconds for_so_long(200 + below(2800));
    away[name] = std::chrono::steady_clock::now() + for_so_long;
    MESSAGE(i << ": " << chosen.what << ", " << name << ", away for " << for_so_long.count()
              << " ms");
  }
  bring_back(true);
  // A stopped process is silent and its connections stay open. When it continues, the others gave
  // it up a minute ago.
  const auto stopped = all.peers()[below(5)];
  const auto witness = all.peers()[stopped == "p-4" ? 3 : 4];
  const auto rounds_of = [&](const std::string& name) {
    auto seen = all.reef().metrics(name);
    return seen[rounds_ok] + seen[rounds_partial];
  };
  const auto before = all.epoch_of(witness), rounds_before = rounds_of(stopped);
  all.reef().node(stopped).signal(SIGSTOP);
  std::this_thread::sleep_for(60s); // the length of the standstill is part of the test
  const auto meanwhile = all.epoch_of(witness) - before;
  all.reef().node(stopped).signal(SIGCONT);
  MESSAGE(stopped << " stood still for " << meanwhile << " epochs");
  CHECK(meanwhile >= 5);
  CHECK(wait_until([&] { return rounds_of(stopped) > rounds_before; }, slow_patience));
  MESSAGE("all of it had happened by epoch " << all.epoch_of(witness));
  all.check_all();
}
