// A member of a real swarm signs two votes in each round. The others ban its key, keep the proof on
// their disks, refuse it at the handshake, and train on.
#include "netem/wire/key_files.hpp"
#include "scenarios/runner/bans_file.hpp"
#include "tests/cluster/support/attacker.hpp"
#include "tests/cluster/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <filesystem>

using namespace shoal;
using namespace shoal::cluster;

TEST_CASE("a member that votes twice is banned and refused by all, also after restarts") {
  swarm reef(endless_swarm(4));
  const std::vector<std::string> honest{"p-0", "p-1", "p-2", "shard-0"};
  for (const auto& name : honest) reef.start(name, {"--quiet"});
  reef.start("p-3", {"--quiet", "--conduct", "two_votes"});
  const auto refused = [&](const std::string& name) {
    return reef.metrics(name)["shoal_handshakes_refused_total{reason=\"banned\"}"];
  };
  const auto bans_of = [&](const std::string& name) {
    return scenarios::load_bans(std::filesystem::path(reef.keys_of(name)) / scenarios::bans_file);
  };
  for (const auto& name : honest) {
    CAPTURE(name);
    REQUIRE_MESSAGE(reef.node(name).says("bans p-3 for two votes in one round"),
                    reef.node(name).err());
    // The link ends, and each new one is refused.
    CHECK(wait_until(
        [&] { return refused(name) >= 1 && reef.metrics(name)["shoal_links_open"] == 3; }));
    const auto bans = bans_of(name);
    REQUIRE(bans.ok());
    CHECK(bans->skipped.empty());
    REQUIRE(bans->all.size() == 1);
    CHECK(bans->all.front().name == "p-3");
  }
  CHECK(reef.node("p-3").says("banned, this host has a proof against the key of p-3"));

  // The banned member restarts, and so does an honest host, which has to remember.
  reef.node("p-3").signal(SIGKILL);
  reef.node("p-3").wait();
  reef.node("p-1").signal(SIGKILL);
  reef.node("p-1").wait();
  auto& again = reef.restart("p-1");
  CHECK(again.says("refuses p-3, which it banned at "));
  auto& back = reef.restart("p-3");
  CHECK_MESSAGE(back.says("banned, this host has a proof against the key of p-3"), back.err());
  auto direct =
      reef.start_other("direct", {"--quiet", "--name", "p-3", "--keys", reef.keys_of("p-3"),
                                  "--listen", "127.0.0.1:0", "--join", reef.address_of("p-1")});
  CHECK_MESSAGE(direct->says("banned, this host has a proof against the key of p-3"),
                direct->err());
  CHECK(direct->err().find("linked with p-1") == std::string::npos);

  // Operators see it, and the others train on.
  const auto before = reef.metrics("p-0")["shoal_epoch"];
  CHECK(wait_until([&] { return reef.metrics("p-0")["shoal_epoch"] >= before + 5; }));
  node_process status(
      reef.folder().path(), "status",
      {"status", "--join", reef.address_of("p-0"), "--keys", reef.keys_of("guest")});
  REQUIRE(status.wait() == 0);
  CHECK_MESSAGE(status.out().find("banned: p-3 (member ") != std::string::npos, status.out());
  CHECK_MESSAGE(status.out().find("for two votes in one round, since 20") != std::string::npos,
                status.out());
  for (const auto& name : honest) {
    CAPTURE(name);
    CHECK(reef.node(name).running());
    CHECK(bans_of(name)->all.size() == 1);
  }
}

TEST_CASE("a damaged line in the file of bans is skipped with a warning, and bans nobody") {
  swarm reef(endless_swarm(2));
  const auto file = std::filesystem::path(reef.keys_of("p-0")) / scenarios::bans_file;
  REQUIRE(netem::wire::write_text(file, "vote for mallory\n").ok());
  reef.start("p-0");
  CHECK(reef.node("p-0").says("warning: '" + file.string() + "': line 1 is skipped: "));
  CHECK(reef.node("p-0").err().find("refuses ") == std::string::npos);
}

TEST_CASE("a conduct that does not exist is refused with those that do") {
  swarm reef(endless_swarm(2));
  auto node = reef.start_other("wrong", {"--name", "p-0", "--keys", reef.keys_of("p-0"), "--listen",
                                         "127.0.0.1:0", "--conduct", "two_vote"});
  CHECK(node->wait() == 2);
  CHECK(node->err().find("--conduct: there is no conduct 'two_vote'; did you mean 'two_votes'?") !=
        std::string::npos);
}

TEST_CASE("a conduct of the other kind of host is refused") {
  swarm reef(endless_swarm(2));
  const auto refused = [&](const char* name, const char* conduct, const std::string& why) {
    auto node = reef.start_other(name, {"--name", name, "--keys", reef.keys_of(name), "--listen",
                                        "127.0.0.1:0", "--conduct", conduct});
    CHECK(node->wait() == 1);
    CHECK_MESSAGE(node->err().find("error: --conduct: " + why) != std::string::npos, node->err());
  };
  refused("p-0", "poisoned_samples",
          "'poisoned_samples' is an attack of a data shard, and 'p-0' is a peer");
  refused("shard-0", "two_votes",
          "'two_votes' is an attack of a peer, and 'shard-0' is a data shard");
}
