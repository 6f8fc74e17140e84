// One of eight members of a real swarm sends false gradients. A validator finds it out, the others
// ban its key by a verdict, refuse it at the handshake, also after restarts, and train on.
#include "scenarios/runner/bans_file.hpp"
#include "tests/cluster/support/attacker.hpp"
#include "tests/cluster/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <filesystem>

using namespace shoal;
using namespace shoal::cluster;

TEST_CASE("a member that sends false gradients is banned by a verdict, also after restarts") {
  swarm reef(endless_swarm(
      8, ", min_group_size: 4",
      "security: {kind: btard, validators: 3, radius: 1, commit_time: 2s, duty_time: 6s}"));
  const std::string liar = "p-7";
  std::vector<std::string> honest{"shard-0"};
  for (unsigned i = 0; i < 7; ++i) honest.push_back(fmt::format("p-{}", i));
  for (const auto& name : honest) reef.start(name, {"--quiet"});
  reef.start(liar, {"--quiet", "--conduct", "flipped_signs"});
  const auto bans_of = [&](const std::string& name) {
    return scenarios::load_bans(std::filesystem::path(reef.keys_of(name)) / scenarios::bans_file);
  };
  const auto refused = [&](const std::string& name) {
    return reef.metrics(name)["shoal_handshakes_refused_total{reason=\"banned\"}"];
  };
  for (const auto& name : honest) {
    CAPTURE(name);
    REQUIRE_MESSAGE(reef.node(name).says("bans p-7 for lost case "), reef.node(name).err());
    CHECK(reef.node(name).err().find("about gradient") != std::string::npos);
    CHECK(wait_until([&] { return reef.metrics(name)["shoal_links_open"] == 7; }));
    const auto bans = bans_of(name);
    REQUIRE(bans.ok());
    CHECK(bans->skipped.empty());
    REQUIRE(bans->all.size() == 1);
    CHECK(bans->all.front().name == liar);
  }
  CHECK(reef.node(liar).says("banned, this host has a proof against the key of p-7"));
  CHECK(refused("p-0") + refused("p-1") + refused("shard-0") > 0);

  // The attacker and an honest host restart. The honest one reads the verdict from its disk, though
  // it no longer knows the group that gave it.
  for (const auto& name : {liar, std::string("p-1")}) {
    reef.node(name).signal(SIGKILL);
    reef.node(name).wait();
  }
  CHECK(reef.restart("p-1").says("refuses p-7, which it banned at "));
  auto direct =
      reef.start_other("direct", {"--quiet", "--name", liar, "--keys", reef.keys_of(liar),
                                  "--listen", "127.0.0.1:0", "--join", reef.address_of("p-1")});
  CHECK_MESSAGE(direct->says("banned, this host has a proof against the key of p-7"),
                direct->err());
  CHECK(direct->err().find("linked with p-1") == std::string::npos);

  // Operators see it, and the others train on.
  const auto before = reef.metrics("p-0")["shoal_epoch"];
  CHECK(wait_until([&] { return reef.metrics("p-0")["shoal_epoch"] >= before + 5; }));
  node_process status(
      reef.folder().path(), "status",
      {"status", "--join", reef.address_of("p-0"), "--keys", reef.keys_of("guest")});
  REQUIRE(status.wait() == 0);
  CHECK_MESSAGE(status.out().find("banned: p-7 (member ") != std::string::npos, status.out());
  CHECK_MESSAGE(status.out().find("about gradient, since 20") != std::string::npos, status.out());
  node_process story(reef.folder().path(), "explain",
                     {"explain", reef.out_of("p-0"), "--case", "1"});
  REQUIRE_MESSAGE(story.wait() == 0, story.err());
  CHECK_MESSAGE(story.out().find("p-7") != std::string::npos, story.out());
  CHECK_MESSAGE(story.out().find("about gradient") != std::string::npos, story.out());
  for (const auto& name : honest) {
    CAPTURE(name);
    CHECK(reef.node(name).running());
    CHECK(bans_of(name)->all.size() == 1);
  }
}
