// Mistakes of users with shoal node: the program says what is wrong and what to do, and leaves no
// files behind.
#include "netem/wire/key_files.hpp"
#include "tests/cluster/support/attacker.hpp"
#include "tests/cluster/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace shoal;
using namespace shoal::cluster;

namespace {

std::string scenario(std::uint64_t epochs) {
  return fmt::format(R"(
seed: 3
stop_time: 10min
network: {{default_delay: 1ms, detection_time: 2s}}
devices: {{fast: {{samples_per_second: 150, step_time: 2ms}}}}
peers: {{p: {{count: 4, up: 20Mbit, down: 50Mbit, device: fast}}}}
workload: {{kind: quadratic, parameters: 400}}
training: {{target_batch: 64, micro_batch: 4, epochs: {}, min_refresh: 50ms, max_refresh: 400ms, optimizer: {{kind: sgd, learning_rate: 0.1}}}}
averaging: {{matchmaking_time: 600ms, round_timeout: 10s, sender_timeout: 3s}}
record: {{metrics_interval: 200ms}}
)",
                     epochs);
}

/// Runs a command line that must be refused at once, and checks the files afterwards.
struct refusal_bench {
  swarm reef{scenario(2)};
  std::string out = (reef.folder() / "out").string();

  void check(int exit, std::vector<std::string> arguments, const std::vector<std::string>& messages,
             const std::vector<std::string>& environment = {}) {
    arguments.insert(arguments.end(), {"--out", out});
    CAPTURE(fmt::format("{}", fmt::join(arguments, " ")));
    const auto process = reef.start_other("refused", arguments, environment);
    CHECK(process->wait() == exit);
    INFO(process->err());
    CHECK(process->out().empty());
    for (const auto& message : messages) {
      CAPTURE(message);
      CHECK(process->err().find(message) != std::string::npos);
    }
    CHECK(!std::filesystem::exists(out));
    CHECK(!std::filesystem::exists(out + ".partial"));
  }
};

/// Makes the program see another machine: a shifted clock or another host name. AddressSanitizer
/// must be loaded first, so it is preloaded, too.
const std::vector<std::string> other_machine(const std::string& what) {
  return {"LD_PRELOAD=" OTHER_CLOCK, "ASAN_OPTIONS=verify_asan_link_order=0", what};
}

} // namespace

TEST_CASE("a wrong command line for a node is refused with the remedy") {
  refusal_bench bench;
  const std::vector<std::string> p0{"--name", "p-0", "--insecure"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), p0.begin(), p0.end());
    return more;
  };
  bench.check(2, p0,
              {"error: give the address of this host with --listen HOST:PORT", "--outbound-only"});
  bench.check(2, with({"--listen", "127.0.0.1:0", "--outbound-only"}),
              {"error: --listen and --outbound-only"});
  bench.check(2, with({"--outbound-only"}),
              {"error: a host that others cannot reach has to --join a host that they can reach"});
  bench.check(2, with({"--listen", "127.0.0.1:0", "--join", "127.0.0.1"}),
              {"error: --join: '127.0.0.1' has no port", "host:port"});
  bench.check(2, with({"--listen", "127.0.0.1:0", "--join", "no-such-host.invalid:7000"}),
              {"error: --join: cannot resolve 'no-such-host.invalid'"});
  bench.check(2, with({"--listen", "127.0.0.1:70000"}),
              {"error: --listen: '127.0.0.1:70000' has no port between 0 and 65535"});
  bench.check(2, with({"--listen", "127.0.0.1:0", "--advertise", "lab"}),
              {"error: --advertise: 'lab' has no port"});
  bench.check(2, with({"--listen", "127.0.0.1:0", "--until", "soon"}), {"error: --until: "});
  bench.check(2, {"--name", "p-0", "--listen", "127.0.0.1:0"},
              {"error: give the folder of this host's keys with --keys DIR", "--insecure"});
  bench.check(2, with({"--listen", "127.0.0.1:0", "--keys", bench.reef.keys_of("p-0")}),
              {"error: --keys and --insecure contradict each other"});
  bench.check(2, with({"--listen", "0.0.0.0:0"}),
              {"error: --listen 0.0.0.0:0 listens on all interfaces", "--advertise HOST:PORT"},
              other_machine("HOST_NAME_IS=no-such-host.invalid"));
  bench.check(1, {"--name", "lab-7", "--insecure", "--listen", "127.0.0.1:0"},
              {"error: the scenario has no host 'lab-7'", "p-0", "shard-0", "--group"});
  bench.check(1, {"--name", "lab-7", "--group", "q", "--insecure", "--listen", "127.0.0.1:0"},
              {"error: the scenario has no group 'q' of peers; there are p"});
  bench.check(1, {"--name", "shard-0", "--group", "p", "--insecure", "--listen", "127.0.0.1:0"},
              {"error: 'shard-0' is a data shard"});
  bench.check(1, with({"--listen", "127.0.0.1:0", "--set", "training.target_batches=3"}),
              {"did you mean 'target_batch'?"});
}

TEST_CASE("a port that cannot be listened on is refused before anything is written") {
  refusal_bench bench;
  const auto taken = bench.reef.port_of("p-1");
  auto& first = bench.reef.start("p-1", {"--quiet"});
  REQUIRE(first.says("p-1: up"));
  const auto listens = [](const std::string& at) {
    return std::vector<std::string>{"--name", "p-0", "--insecure", "--listen", at};
  };
  const auto address = fmt::format("127.0.0.1:{}", taken);
  REQUIRE(wait_until([&] { return raw_connection(taken).connected(); }));
  bench.check(1, listens(address),
              {fmt::format("error: cannot listen on {}: another program uses that port", address),
               "choose another one"});
  bench.check(
      1, listens("192.0.2.1:7000"),
      {"error: cannot listen on 192.0.2.1:7000: this machine has no such address", "0.0.0.0"});
  bench.check(1, listens("no-such-host.invalid:7000"),
              {"error: cannot resolve 'no-such-host.invalid'"});
  auto metrics = listens("127.0.0.1:0");
  metrics.insert(metrics.end(), {"--metrics", address});
  bench.check(1, metrics, {"error: --metrics: ", "Address already in use"});
}

TEST_CASE("keys that are missing or readable or another node's or not valid are refused") {
  namespace fs = std::filesystem;
  refusal_bench bench;
  const auto with = [](const std::string& folder) {
    return std::vector<std::string>{"--listen", "127.0.0.1:0", "--name", "p-0", "--keys", folder};
  };
  const auto good = bench.reef.keys_of("p-0");
  const auto copy = [&](const char* name) {
    const auto out = bench.reef.folder() / name;
    fs::copy(good, out);
    return out;
  };
  bench.check(1, with((bench.reef.folder() / "nowhere").string()),
              {"is not a folder of keys", "shoal keys request"});
  const auto lost = copy("lost");
  fs::remove(lost / netem::wire::node_key_file);
  bench.check(1, with(lost.string()),
              {(lost / "node.key").string() + "' is missing", "shoal keys request"});
  const auto open = copy("open");
  fs::permissions(open / netem::wire::node_key_file, fs::perms::group_read | fs::perms::others_read,
                  fs::perm_options::add);
  bench.check(1, with(open.string()), {(open / "node.key").string(), "chmod 600"});
  const auto unlisted = copy("unlisted");
  fs::remove(unlisted / netem::wire::revocation_list_file);
  bench.check(1, with(unlisted.string()), {(unlisted / "revoked.crl").string() + "' is missing"});
  bench.check(1, with(bench.reef.keys_of("p-1")), {"are those of 'p-1', not of 'p-0'"});
  // The clock is an hour late, so the certificate is not valid yet.
  bench.check(1, with(good), {"node.crt", "is not valid before", "this machine's clock says"},
              other_machine("CLOCK_IS_OFF_BY=-3600"));
}

TEST_CASE("nodes with another's name or scenario or clock are told so and end while the swarm "
          "trains on") {
  // 12 s on an idle machine. A node with another's name gives up after three detection times.
  constexpr std::uint64_t epochs = 90;
  swarm reef(scenario(epochs));
  for (const char* name : {"p-0", "p-1", "shard-0"}) reef.start(name, {"--quiet"});
  REQUIRE_MESSAGE(wait_until([&] { return reef.metrics("p-0")["shoal_epoch"] >= 1; }),
                  reef.node("p-0").err());
  const auto intruder = [&](const std::string& label, const std::string& name,
                            std::vector<std::string> more,
                            const std::vector<std::string>& environment = {}) {
    more.insert(more.begin(), {"--quiet", "--name", name, "--keys", reef.keys_of(name), "--listen",
                               "127.0.0.1:0", "--join", reef.address_of("p-0"), "--out",
                               (reef.folder() / ("out-" + label)).string()});
    return reef.start_other(label, more, environment);
  };
  // All start at once, since a node that might only be early tries for a while.
  auto of_p0 = intruder("second-p-0", "p-0", {}), of_p1 = intruder("second-p-1", "p-1", {});
  auto other = intruder(
      "other", "p-2",
      {"--set", "training.target_batch=65", "--set", "training.optimizer.learning_rate=0.2"});
  auto late = intruder("late", "p-3", {}, other_machine("CLOCK_IS_OFF_BY=3600"));

  const auto ends = [&](node_process& who, const std::string& message) {
    CHECK(who.wait() == 3);
    INFO(who.err());
    // The refusal is said once at first, once for good, and once as the error.
    std::size_t said = 0;
    for (std::size_t at = 0; (at = who.err().find("no link with", at)) != std::string::npos; ++at)
      ++said;
    CHECK(said <= 3);
    CHECK(who.err().find("error: no link with " + reef.address_of("p-0") + ": " + message) !=
          std::string::npos);
  };
  ends(*of_p0, "name_taken, there is a host with the name p-0");
  ends(*of_p1, "name_taken, there is a host with the name p-1, at " + reef.address_of("p-1"));
  ends(*other, "other_scenario, it runs another scenario: training.optimizer.learning_rate is 0.1 "
               "there and 0.2 here (2 differences in all)");
  ends(*late, "clock_off, its clock is ");
  CHECK(late->err().find("ahead of that of p-0") != std::string::npos);
  // A host that was refused has done nothing, and leaves nothing.
  for (const char* label : {"second-p-0", "second-p-1", "other", "late"})
    CHECK_MESSAGE(!std::filesystem::exists(reef.folder() / (std::string("out-") + label)), label);
  reef.check_trained(epochs);
  for (const char* name : {"p-0", "p-1", "shard-0"}) {
    CAPTURE(name);
    CHECK(reef.node(name).err().find("it has been silent") == std::string::npos);
    // All end when the last epoch is over, and no host calls that a loss.
    CHECK_MESSAGE(reef.node(name).err().find(": lost ") == std::string::npos,
                  reef.node(name).err());
  }
}
