// Hosts with names of their own, and the inventory that a scenario is promoted to.
#include "scenarios/schema/hosts.hpp"
#include "scenarios/schema/inventory.hpp"
#include "scenarios/schema/load.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

const std::string head = "stop_time: 60s\n"
                         "workload: {kind: timing, parameters: 1000}\n"
                         "devices: {laptop: {samples_per_second: 10}}\n";

std::vector<std::string> names_in(const std::string& text) {
  const auto loaded = load_text(head + text, "s.yaml");
  INFO((loaded.errors.empty() ? std::string{} : render(loaded.errors.front())));
  REQUIRE(loaded.value);
  std::vector<std::string> out = shard_hosts(*loaded.value);
  for (const auto& host : expand_hosts(*loaded.value)) out.push_back(host.name);
  // The printed inventory reads back as the same.
  const auto again = load_text(to_yaml(*loaded.value), "s.yaml");
  REQUIRE(again.value);
  CHECK(*again.value == *loaded.value);
  return out;
}

std::string first_error(const std::string& text) {
  const auto loaded = load_text(head + text, "s.yaml");
  REQUIRE(!loaded.errors.empty());
  return loaded.errors.front().message;
}

std::string group(const std::string& more) {
  return "peers: {home: {up: 10Mbit, down: 50Mbit, device: laptop" + more + "}}\n";
}

} // namespace

TEST_CASE(
    "hosts can have names of their own, and there are as many as names unless more are said") {
  using list = std::vector<std::string>;
  CHECK(names_in(group(", count: 2")) == list{"shard-0", "home-0", "home-1"});
  CHECK(names_in(group(", names: [ada, bob]")) == list{"shard-0", "ada", "bob"});
  CHECK(names_in(group(", names: [ada], count: 3")) == list{"shard-0", "ada", "home-1", "home-2"});
  CHECK(names_in("data: {names: [text]}\n" + group(", count: 1")) == list{"text", "home-0"});
  CHECK(names_in("data: {names: [text], replicas: 2}\n" + group(", count: 1")) ==
        list{"text", "shard-1", "home-0"});
  // Faults find them by these.
  CHECK(load_text(head + "faults: [{kill: machine, select: a*, at: 1s}]\n" +
                      group(", names: [ada, bob]"),
                  "s.yaml")
            .value);
}

TEST_CASE("names that two hosts would have, or that are none, are refused") {
  CHECK(first_error(group(", names: [ada, ada]")) ==
        "a host of peers.home has the name 'ada', too");
  CHECK(first_error(group(", names: [ada, home-2], count: 3")) ==
        "a host of peers.home has the name 'home-2', too");
  CHECK(first_error(group(", names: [shard-0]")) == "a host of data has the name 'shard-0', too");
  CHECK(first_error("data: {names: [ada]}\n" + group(", names: [ada]")) ==
        "a host of peers.home has the name 'ada', too");
  CHECK(first_error(group(", names: [Ada]")) ==
        "'Ada' cannot name a host: use a-z, 0-9, '_' and '-'");
  CHECK(first_error(group(", names: [ada, bob], count: 1")) == "2 names, and count is 1");
  CHECK(first_error("data: {names: [a, b]}\n" + group("")) == "2 names, and replicas is 1");
}

TEST_CASE("an inventory is read as it was written") {
  inventory all;
  auto& lab = all.hosts["lab-1"];
  lab.address = "lab-1.example.org:7000";
  lab.model = "transformer: layers 2, heads 4, dim 64, context 64, micro_batch 4";
  lab.samples_per_second = 408.4;
  lab.jitter = 0.03;
  lab.step_time = std::chrono::microseconds(708);
  lab.boot_time = std::chrono::milliseconds(480);
  lab.cores = 16;
  lab.memory = {std::uint64_t{64} << 30};
  lab.needs = {std::uint64_t{185} << 20};
  lab.serialize = {4.21e9};
  lab.up = {94.1e6};
  lab.down = {312e6};
  lab.delays = {{"lab-0", std::chrono::microseconds(11'800)}};
  lab.ssh = "me@lab-1.example.org:2222";
  lab.price_per_hour = 0.35;
  auto& shard = all.hosts["lab-0"];
  shard.shard = true;
  shard.up = shard.down = {1e9};
  const auto text = to_yaml(all);
  const auto read = load_inventory_text(text, "hosts.yaml");
  INFO(text);
  REQUIRE(read.value);
  CHECK(read.warnings.empty());
  CHECK(*read.value == all);
  CHECK(to_yaml(*read.value) == text);
}

TEST_CASE("a mistake in an inventory is told with its line") {
  const auto errors = [](const std::string& text) {
    std::string out;
    const auto read = load_inventory_text(text, "hosts.yaml");
    CHECK(read.value.has_value() == read.errors.empty());
    for (const auto& each : read.errors) out += render(each);
    for (const auto& each : read.warnings) out += render(each);
    return out;
  };
  const auto says = [&](const std::string& text, const std::string& part) {
    const auto said = errors(text);
    CHECK_MESSAGE(said.find(part) != std::string::npos, said);
  };
  says("hosts: {a: {up: 1Mbit}}", "hosts.yaml:1:9: error: missing key 'down' in hosts.a");
  says("hosts: {a: {up: 1Mbit, down: fast}}", "hosts.yaml:1:30: error: hosts.a.down: ");
  says("hosts: {}", "an inventory needs at least one host");
  says("[]", "an inventory is a mapping of keys to values, not a list");
  says("hosts: {A: {up: 1Mbit, down: 1Mbit}}", "hosts.yaml:1:9: error: 'A' cannot name a host");
  says("hosts:\n  a: {up: 1Mbit, down: 1Mbit, address: 'x:1'}\n  b: {up: 1Mbit, down: 1Mbit, "
       "address: 'x:1'}\n",
       "hosts.yaml:3:40: error: 'a' and 'b' have one address, x:1: two nodes on one machine need "
       "two ports");
  says("hosts: {a: {up: 1Mbit, down: 1Mbit, delays: {b: 1ms}}}",
       "hosts.yaml:1:46: warning: there is no host 'b' in this inventory");
  says("hosts: {a: {up: 1Mbit, down: 1Mbit, adress: 'x:1'}}", "did you mean 'address'?");
}
