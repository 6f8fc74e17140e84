// An operator looks at a running swarm and tells a node to leave it. Others try the same.
#include "netem/wire/key_files.hpp"
#include "netem/wire/send_control_request.hpp"
#include "scenarios/observe/node_report.hpp"
#include "tests/cluster/support/attacker.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>

using namespace shoal;
using namespace shoal::cluster;
using namespace shoal::netem::wire;

namespace {

struct command {
  int status;
  std::string out, err;
};

struct operated_swarm {
  swarm reef{endless_swarm(3)};
  int asked = 0;

  operated_swarm() {
    for (const char* name : {"p-0", "p-1", "p-2", "shard-0"}) reef.start(name, {"--quiet"});
    REQUIRE_MESSAGE(wait_until([&] {
                      return reef.metrics("p-0")["shoal_epoch"] >= 2 &&
                             reef.metrics("p-1")["shoal_links_open"] >= 3;
                    }),
                    reef.node("p-0").err());
  }
  command run(std::vector<std::string> arguments) {
    node_process process(reef.folder().path(), fmt::format("command-{}", ++asked), arguments);
    const auto status = process.wait();
    REQUIRE(status);
    return {*status, process.out(), process.err()};
  }
  /// Ends the nodes as a service manager would. Each has trained, and no invariant was violated.
  void end(const std::vector<std::string>& names) {
    for (const auto& name : names) reef.node(name).signal(SIGTERM);
    for (const auto& name : names) {
      CHECK(reef.node(name).wait() == 130);
      const auto summary = reef.summary(name);
      for (const auto& [rule, check] : summary["invariants"].items())
        CHECK_MESSAGE(check["violated"] == 0, name << " " << rule);
    }
  }
};

} // namespace

TEST_CASE(
    "status shows every host of a swarm and an operator's drain ends one of them in good order") {
  operated_swarm bench;
  auto& reef = bench.reef;
  const auto guest = reef.keys_of("guest"), boss = reef.keys_of("boss", true);

  const auto table =
      bench.run({"status", "--join", reef.address_of("p-1"), "--keys", guest, "--links"});
  CHECK(table.status == 0);
  INFO(table.out, table.err);
  CHECK(table.out.find("4 of 4 hosts answer, 3 train") != std::string::npos);
  for (const char* name : {"p-0", "p-1", "p-2", "shard-0"})
    CHECK(table.out.find(fmt::format("\n{} ", name)) != std::string::npos);

  CHECK(table.out.find("\nlink ") != std::string::npos);

  const auto all =
      bench.run({"status", "--join", reef.address_of("shard-0"), "--keys", guest, "--json"});
  REQUIRE_MESSAGE(all.status == 0, all.err);
  const auto seen = nlohmann::json::parse(all.out);
  CHECK(seen.size() == 4);
  for (const auto& [name, host] : seen.items()) {
    const auto says = scenarios::node_report_from_json(host["says"].dump());
    REQUIRE_MESSAGE(says, name);
    CHECK(says->name == name);
    CHECK(says->epoch >= 1);
    CHECK(says->role == (name == "shard-0" ? "shard" : "trainer"));
    CHECK(says->neighbours.size() == 3);
    for (const auto& other : says->neighbours) {
      CHECK_MESSAGE(other.round_trip_seconds.value_or(0) > 0, name << " " << other.name);
      CHECK(other.sends_bits_per_second > 0);
      CHECK(other.receives_bits_per_second > 0);
      CHECK(other.relay.empty());
    }
    CHECK(says->leaving == false);
    if (says->role == "trainer") CHECK(!says->last_rounds.empty());
    CHECK(says->contribution.empty() == (name == "shard-0"));
  }

  // A guest may look, and may not end hosts.
  const auto refused =
      bench.run({"drain", "p-2", "--join", reef.address_of("p-0"), "--keys", guest});
  CHECK(refused.status == 3);
  CHECK(refused.err.find("guest is no operator: 'shoal keys admit NAME --operator' makes one") !=
        std::string::npos);
  CHECK(reef.node("p-2").running());
  CHECK(reef.node("p-2").says("guest told it to leave, and is no operator"));
  const auto mistyped =
      bench.run({"drain", "p-3", "--join", reef.address_of("p-0"), "--keys", boss});
  CHECK(mistyped.status == 1);
  CHECK(mistyped.err.find("there is no 'p-3' in the swarm; did you mean 'p-") != std::string::npos);

  const auto done = bench.run({"drain", "p-2", "--join", reef.address_of("p-0"), "--keys", boss});
  CHECK(done.status == 0);
  CHECK(done.out.starts_with("p-2 leaves"));
  CHECK(reef.node("p-2").wait() == 130);
  CHECK(reef.node("p-2").err().find("boss told it to leave") != std::string::npos);
  CHECK(reef.summary("p-2")["peers"]["left"] == 1);
  // The signed record remains, under the node's name.
  const auto ca = guest + "/swarm.crt";
  const auto verified = bench.run({"keys", "verify", reef.out_of("p-2"), "--ca", ca});
  INFO(verified.out, verified.err);
  CHECK(verified.status == 0);
  CHECK(verified.out.find("signed by 'p-2'") != std::string::npos);
  CHECK(verified.out.find("\nsamples: ") != std::string::npos);
  const auto forged = reef.folder() / "forged.txt";
  auto text =
      netem::wire::read_text(std::filesystem::path(reef.out_of("p-2")) / "contribution.txt");
  REQUIRE(text);
  text->replace(text->find("samples: "), 9, "samples: 9");
  REQUIRE(netem::wire::write_text(forged, *text));
  const auto refuted =
      bench.run({"keys", "verify", forged.string(), reef.out_of("p-1"), "--ca", ca});
  CHECK(refuted.status == 1);
  CHECK(refuted.err.find("it was changed after 'p-2' signed it") != std::string::npos);
  // The second record is checked nevertheless.
  CHECK(refuted.out.find("signed by 'p-1'") != std::string::npos);

  // The other nodes know, and train on.
  const auto before = reef.metrics("p-0")["shoal_epoch"];
  CHECK(wait_until([&] { return reef.metrics("p-0")["shoal_epoch"] >= before + 3; }));
  const auto later = bench.run({"status", "--join", reef.address_of("p-0"), "--keys", boss});
  CHECK(later.out.find("3 of 3 hosts answer, 2 train") != std::string::npos);
  bench.end({"p-0", "p-1", "shard-0"});
}

TEST_CASE("a client that is not admitted gets no answer and neither does a malformed question") {
  operated_swarm bench;
  auto& reef = bench.reef;
  const auto at = *parse_address(reef.address_of("p-0"));
  const auto boss = reef.keys_of("boss", true);

  const auto open = bench.run({"status", "--join", reef.address_of("p-0"), "--insecure"});
  CHECK(open.status == 3);
  CHECK(open.out.empty());
  CHECK(bench.run({"status", "--join", reef.address_of("p-0")}).status == 2);
  CHECK(bench.run({"status", "--join", "127.0.0.1", "--keys", boss})
            .err.find("error: --join: '127.0.0.1' has no port") != std::string::npos);
  const auto nobody =
      bench.run({"status", "--join", fmt::format("127.0.0.1:{}", free_port()), "--keys", boss});
  CHECK(nobody.status == 3);

  const auto count = [&](const char* series) { return reef.metrics("p-0")[series]; };
  const auto ask = [&](const identity& as, const std::string& question) {
    return send_control_request(at, {}, credentials_of(as, reef.moderator().certificate_pem()),
                                nullptr, question, std::chrono::seconds(10));
  };
  const auto revoked = reef.admit("old-boss", true);
  reef.revoke(revoked);
  const auto old = ask(revoked, "drain");
  CHECK(!old.ok());
  CHECK(old.error().find("revoked, the certificate of old-boss was revoked") != std::string::npos);
  CHECK(
      wait_until([&] { return count("shoal_handshakes_refused_total{reason=\"revoked\"}") >= 1; }));

  const auto good = reef.admit("lab", true);
  CHECK(ask(good, "status").ok());
  CHECK(ask(good, "format").error().find("it does not know this question") != std::string::npos);
  CHECK(!ask(good, std::string(longest_question + 1, 'x')).ok());
  CHECK(wait_until([&] { return count("shoal_frames_refused_total{reason=\"bad_frame\"}") >= 1; }));
  // Silent clients, more than the host allows.
  std::vector<std::shared_ptr<netem::wire::pipe>> silent;
  std::atomic<int> closed{0};
  for (int i = 0; i < 40; ++i) {
    silent.push_back(open_pipe(at.text(), control_request_kind,
                               credentials_of(good, reef.moderator().certificate_pem()), {}));
    silent.back()->start([](payload) {}, [&closed](const std::string&) { ++closed; });
  }
  CHECK(wait_until([&] { return closed == 40; }));
  // A closed pipe is freed once nobody holds it, so none of its callbacks keeps it alive.
  const std::vector<std::weak_ptr<netem::wire::pipe>> left(silent.begin(), silent.end());
  silent.clear();
  CHECK(wait_until([&] {
    return std::all_of(left.begin(), left.end(), [](const auto& each) { return each.expired(); });
  }));
  CHECK(ask(good, "status").ok());
  bench.end({"p-0", "p-1", "p-2", "shard-0"});
}
