#include "tests/scenarios/schema/files.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

namespace {

void round_trip(const std::filesystem::path& file) {
  const load_result first = load(file.string());
  INFO(file);
  REQUIRE_MESSAGE(first.value, rendered(first));
  const std::string text = to_yaml(*first.value);
  const load_result second = load_text(text, "run.yaml");
  REQUIRE_MESSAGE(second.value, text << rendered(second));
  CHECK(*second.value == *first.value);
  CHECK(to_yaml(*second.value) == text);
}

} // namespace

TEST_CASE("a resolved scenario reads back as the same scenario") {
  const auto files = yaml_files("tests/scenarios/valid");
  REQUIRE(files.size() >= 3);
  for (const auto& file : files) round_trip(file);
}

TEST_CASE("every scenario that comes with the program is valid without a warning, and reads back") {
  for (const auto& item : std::filesystem::recursive_directory_iterator("scenarios")) {
    if (item.path().extension() != ".yaml") continue;
    round_trip(item.path());
    const auto said = rendered(load(item.path().string()));
    // This one has more attackers than the paper's theory bears, and is told so.
    if (item.path().filename() == "byzantine.yaml")
      CHECK(said.find("most 15 % of the hosts") != std::string::npos);
    else
      CHECK(said == "");
  }
}

TEST_CASE("quickstart is sixteen volunteers in three regions, three lost in a round and two late") {
  const load_result result = load("scenarios/quickstart.yaml");
  REQUIRE(result.value);
  const scenario& s = *result.value;
  CHECK(expand_hosts(s).size() == 16);
  CHECK(s.network.regions.size() == 3);
  CHECK(s.devices.size() == 3);
  CHECK(s.faults.size() == 3);
  for (const auto& f : s.faults) CHECK(f.on.starts_with("all_reduce."));
}

TEST_CASE("an option that a file leaves out has its documented default") {
  const load_result result = load_text(small(), "folder/tiny.yaml");
  REQUIRE_MESSAGE(result.value, rendered(result));
  const scenario& s = *result.value;
  CHECK(s.name == "tiny");
  CHECK(s.network.regions == std::vector<std::string>{"everywhere"});
  CHECK(s.peers[0].region == "everywhere");
  CHECK(s.data.region == "everywhere");
  CHECK(s.network.default_delay == std::chrono::milliseconds(50));
  CHECK_FALSE(s.averaging.chunk_size); // the vector decides
  CHECK(s.data.up == data_rate{1e9});
  CHECK(s.data.files == std::vector<std::string>{"/usr/share/common-licenses/*"});
  CHECK(s.world == "sim");
}

TEST_CASE("relative data paths begin in the scenario's folder and become absolute") {
  const load_result result =
      load_text(small("data: {files: [../books/*.txt, /tmp/x]}\n"), "/a/b/s.yaml");
  REQUIRE_MESSAGE(result.value, rendered(result));
  CHECK(result.value->data.files == std::vector<std::string>{"/a/books/*.txt", "/tmp/x"});
}

TEST_CASE("merge keys are applied: explicit keys win, then earlier mappings") {
  const load_result result = load_text(
      "x-slow: &slow {up: 1Mbit, down: 2Mbit}\n"
      "x-fast: &fast {up: 100Mbit, down: 200Mbit, device: laptop}\n"
      "stop_time: 1h\nworkload: {kind: timing}\ndevices: {laptop: {samples_per_second: 10}}\n"
      "peers:\n"
      "  a: {<<: *fast, down: 3Mbit}\n"
      "  b: {<<: [*slow, *fast]}\n"
      "  c:\n    count: 2\n    <<: *fast\n",
      "s.yaml");
  REQUIRE_MESSAGE(result.value, rendered(result));
  const auto& peers = result.value->peers;
  CHECK(peers[0].up == data_rate{100e6});
  CHECK(peers[0].down == data_rate{3e6});
  CHECK(peers[1].up == data_rate{1e6});
  CHECK(peers[1].device == "laptop");
  CHECK(peers[2].down == data_rate{200e6});
}

TEST_CASE("churn, optimizer schedule and expectations are read") {
  const load_result result = load("tests/scenarios/valid/everything.yaml");
  REQUIRE_MESSAGE(result.value, rendered(result));
  const scenario& s = *result.value;
  CHECK(s.peers[0].churn.session.distribution == distribution_kind::weibull);
  CHECK(s.peers[0].churn.session.shape == 0.6);
  CHECK(s.peers[0].churn.gap.mean == std::chrono::minutes(5));
  CHECK(s.peers[1].churn.trace.ends_with("trace.csv"));
  CHECK(s.training.optimizer.kind == kernels::optimizer_kind::lamb);
  CHECK(s.training.optimizer.warmup_steps == 10);
  CHECK(s.expect.at("rounds.failed").max == 3);
  CHECK_FALSE(s.expect.at("rounds.failed").min.has_value());
}

TEST_CASE("a file that is not there or is a folder is an error, not a crash") {
  CHECK(rendered(load("no/such.yaml")) ==
        "no/such.yaml: error: cannot be read: No such file or directory\n");
  CHECK(rendered(load("scenarios")) ==
        "scenarios: error: is a directory, expected a scenario file\n");
}

TEST_CASE("the reference page is the one that the descriptions give") {
  if (updating()) write_file("docs/scenario.md", reference_markdown());
  CHECK_MESSAGE(read_file("docs/scenario.md") == reference_markdown(),
                "set SHOAL_UPDATE_EXPECTED=1 and run this test to write docs/scenario.md");
}

TEST_CASE("a line fills what its group does not give, and nothing else") {
  const auto result = load_text("stop_time: 10min\n"
                                "devices: {d: {samples_per_second: 9}}\n"
                                "peers:\n"
                                "  plain: {line: cable, device: d}\n"
                                "  own: {line: cable, up: 3Mbit, jitter: 1ms, distribution: "
                                "uniform, bursts: {p: 1%, r: 30%}, hosts_per_line: 2, device: d}\n"
                                "workload: {kind: timing}\n"
                                "training: {target_batch: 16}\n",
                                "s.yaml");
  REQUIRE_MESSAGE(result.value, rendered(result));
  const auto& plain = result.value->peers[0];
  CHECK(plain.up.bits_per_second == 20e6);
  CHECK(plain.down.bits_per_second == 100e6);
  CHECK(plain.access.delay == std::chrono::milliseconds(14));
  CHECK(plain.access.loss == 0.0005);
  const auto& own = result.value->peers[1];
  CHECK(own.up.bits_per_second == 3e6);
  CHECK(own.down.bits_per_second == 100e6);
  CHECK(own.access.jitter == std::chrono::milliseconds(1));
  CHECK(own.access.loss == 0);
  CHECK(own.access.bursts.p == 0.01);
}
