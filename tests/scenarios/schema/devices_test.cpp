// Presets of devices: their names, their speeds, and what a scenario makes of them.
#include "kernels/transformer_flops.hpp"
#include "scenarios/schema/devices.hpp"
#include "scenarios/workloads/workload.hpp"
#include "tests/scenarios/schema/files.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

namespace {

std::string
on(const std::string& device, const std::string& more = "",
   const std::string& workload = "{kind: timing, parameters: 1000000, sample_size: 256B}") {
  return fmt::format("stop_time: 1h\n"
                     "workload: {}\n"
                     "peers: {{home: {{count: 4, up: 10Mbit, down: 50Mbit, device: {}}}}}\n{}",
                     workload, device, more);
}

} // namespace

TEST_CASE("every listed device is there and fills in an entry of devices") {
  const auto page = read_file("docs/scenario.md");
  const std::string rest = device_names;
  std::size_t found = 0;
  for (std::size_t at = 0; at != std::string::npos; ++found) {
    const auto end = rest.find(", ", at);
    const auto name = rest.substr(at, end - at);
    REQUIRE_MESSAGE(find_device(name) != nullptr, name);
    CHECK_MESSAGE(page.find("`" + name + "`") != std::string::npos, name);
    const auto loaded = load_text(on(name), "s.yaml");
    REQUIRE_MESSAGE(loaded.value, rendered(loaded));
    CHECK(rendered(loaded) == "");
    REQUIRE(loaded.value->devices.contains(name));
    // The resolved scenario has the numbers, and reads back as the same.
    const auto again = load_text(to_yaml(*loaded.value), "s.yaml");
    REQUIRE_MESSAGE(again.value, rendered(again));
    CHECK(again.value->devices == loaded.value->devices);
    at = end == std::string::npos ? end : end + 2;
  }
  CHECK(found == 12);
}

TEST_CASE("a preset has the speed of its maker for the model of the scenario") {
  const auto loaded = load_text(on("t4"), "s.yaml");
  REQUIRE(loaded.value);
  const auto& t4 = loaded.value->devices.at("t4");
  // 0.3 * 65 Tflop/s over 6 * 1e6 parameters * 64 tokens; 28 bytes a parameter at 320 GB/s.
  CHECK(t4.samples_per_second == doctest::Approx(50800));
  CHECK(t4.step_time == 87us);
  // Measured images a second through ConvNeXt-L, 34.4e9 multiplications forward.
  const double images = 2 * kernels::forward_and_backward * 34.4e9;
  for (const auto& [name, measured] : {std::pair{"t4", 80.0}, std::pair{"a10", 185.0}})
    CHECK(usual_utilization * find_device(name)->peak / images ==
          doctest::Approx(measured).epsilon(0.2));
  // Measured samples a second of 512 tokens through ALBERT-large on an H100 (results/devices.md).
  const auto albert =
      load_text(on("h100", "",
                   "{kind: albert, layers: 24, heads: 16, hidden: 1024, embedding: 128, "
                   "feed_forward: 4096, length: 512, vocabulary: 32000}"),
                "s.yaml");
  REQUIRE(albert.value);
  CHECK(albert.value->devices.at("h100").samples_per_second ==
        doctest::Approx(151.5).epsilon(0.05));
}

TEST_CASE("an entry of devices is preferred to the preset of its name") {
  const auto loaded = load_text(on("t4", "devices: {t4: {samples_per_second: 3}}\n"), "s.yaml");
  REQUIRE(loaded.value);
  CHECK(loaded.value->devices.at("t4").samples_per_second == 3);
  CHECK(loaded.value->devices.at("t4").step_time == duration::zero());
}

TEST_CASE("an unknown device is answered with all that there are") {
  const auto loaded = load_text(on("gpu", "devices: {laptop: {samples_per_second: 10}}\n"), "s");
  REQUIRE(!loaded.errors.empty());
  const auto said = rendered(loaded);
  CHECK(said.find("unknown device 'gpu'") != std::string::npos);
  CHECK(said.find("known: laptop") != std::string::npos);
  CHECK(said.find(fmt::format("without an entry of 'devices': {}", device_names)) !=
        std::string::npos);
}

TEST_CASE("the operations of a sample follow from the sizes of its model") {
  const auto flops = [](const std::string& workload) {
    const auto loaded =
        load_text("stop_time: 1h\nworkload: " + workload +
                      "\ndata: {files: [README.md]}\n"
                      "devices: {laptop: {samples_per_second: 10}}\n"
                      "peers: {home: {count: 4, up: 10Mbit, down: 50Mbit, device: laptop}}\n",
                  "s.yaml");
    REQUIRE_MESSAGE(loaded.value, rendered(loaded));
    return loaded.value->workload.definition().sample_flops(loaded.value->workload);
  };
  // 3 * 2 * (8 s d^2 + 4 s d * 4 d + 4 s^2 d) and the output matrix, with s = d = 64.
  const double cube = 64.0 * 64 * 64;
  CHECK(flops("{kind: transformer, layers: 2, heads: 4, dim: 64, context: 64}") ==
        6 * 28 * cube + 6 * 64 * 64 * 256);
  CHECK(flops("{kind: albert, layers: 6, heads: 4, hidden: 256, embedding: 64, feed_forward: 1024, "
              "length: 128}") == doctest::Approx(3.93e9).epsilon(0.01));
}
