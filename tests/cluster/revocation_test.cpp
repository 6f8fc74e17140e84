// A certificate that is revoked at one node is revoked everywhere, since nodes pass the moderator's
// list on.
#include "netem/wire/key_files.hpp"
#include "tests/cluster/support/attacker.hpp"
#include "tests/cluster/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>

using namespace shoal;
using namespace shoal::cluster;
using namespace shoal::netem::wire;

TEST_CASE("a node that is revoked at one node is refused by all, at once and after a restart") {
  swarm reef(endless_swarm(4));
  // All nodes dial the revoked one, and it dials the first node.
  reef.join_via({"p-0", "p-3"});
  const std::vector<std::string> others{"p-0", "p-1", "p-2", "shard-0"};
  for (const auto& name : others) reef.start(name, {"--quiet"});
  reef.start("p-3", {"--quiet"});
  for (const auto& name : others) {
    CAPTURE(name);
    REQUIRE(wait_until([&] { return reef.metrics(name)["shoal_links_open"] >= 4; }));
  }

  const auto before = reef.revocation_list_pem();
  reef.revoke_at("p-1", "p-3");
  const auto refused = [&](const std::string& name) {
    return reef.metrics(name)["shoal_handshakes_refused_total{reason=\"revoked\"}"];
  };
  for (const auto& name : others) {
    CAPTURE(name);
    CHECK_MESSAGE(wait_until([&] {
                    return refused(name) >= 1 && reef.metrics(name)["shoal_links_open"] <= 3;
                  }),
                  reef.metrics(name)["shoal_links_open"] << " links, " << refused(name)
                                                         << " refused\n"
                                                         << reef.node(name).err());
    // The list is saved unchanged.
    CHECK(e2e::slurp(std::filesystem::path(reef.keys_of(name)) / revocation_list_file) ==
          reef.revocation_list_pem());
  }
  CHECK(reef.node("p-1").says("revocation list 2 was put into the folder of keys"));
  CHECK(reef.node("p-2").says("revocation list 2 came from "));
  // The revoked node is told the reason when it connects again.
  const auto ended = reef.node("p-3").wait();
  CHECK_MESSAGE(ended == 3, ended.value_or(-1) << reef.node("p-3").err());
  CHECK(reef.node("p-3").err().find("revoked, the certificate of p-3 was revoked") !=
        std::string::npos);

  // An older list, another moderator's list, and a damaged list change nothing.
  const auto other = moderator::make("reef", swarm::utc_ns(), 24h);
  REQUIRE(other.ok());
  auto damaged = reef.revocation_list_pem();
  damaged[damaged.size() / 2] = damaged[damaged.size() / 2] == 'A' ? 'B' : 'A';
  false_host admitted(reef.address_of("p-0"),
                      credentials_of(reef.admit("late"), reef.moderator().certificate_pem()));
  admitted.greet(reef.hello_of("late", 1));
  REQUIRE(admitted.answer());
  for (const auto& pem :
       {before, other->first_list(swarm::utc_ns()), damaged, std::string("no list")})
    admitted.send(0, frame_writer(frame_kind::revocation_list).put(std::string_view(pem)).done());
  const auto counted = [&](const char* reason) {
    return reef.metrics("p-0")[fmt::format("shoal_frames_refused_total{{reason=\"{}\"}}", reason)];
  };
  CHECK(wait_until([&] { return counted("old_list") == 1 && counted("forged_list") == 3; }));
  CHECK(e2e::slurp(std::filesystem::path(reef.keys_of("p-0")) / revocation_list_file) ==
        reef.revocation_list_pem());
  for (const auto& name : others) CHECK(reef.node(name).running());

  // A restarted node reads the list from its folder.
  reef.node("p-2").signal(SIGKILL);
  CHECK(reef.node("p-2").wait() == 1000 + SIGKILL);
  reef.restart("p-2");
  auto again =
      reef.start_other("again", {"--quiet", "--name", "p-3", "--keys", reef.keys_of("p-3"),
                                 "--listen", "127.0.0.1:0", "--join", reef.address_of("p-2")});
  // The revoked node has the moderator's list, too, and does not start.
  CHECK(again->wait() == 1);
  CHECK(again->err().find("is revoked; ask the moderator of 'reef'") != std::string::npos);
}
