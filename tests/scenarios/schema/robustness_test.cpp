// Aggregators with options, and the checks of attacks against them.
#include "actors/averaging/aggregator.hpp"
#include "scenarios/schema/load.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace shoal::scenarios;

namespace {

std::string swarm(std::string_view averaging, std::string_view conduct = "honest",
                  unsigned attackers = 3) {
  return fmt::format("stop_time: 10min\n"
                     "devices: {{laptop: {{samples_per_second: 10}}}}\n"
                     "peers:\n"
                     "  home: {{count: {}, up: 10Mbit, down: 50Mbit, device: laptop}}\n"
                     "  others: {{count: {}, up: 10Mbit, down: 50Mbit, device: laptop, conduct: "
                     "{}}}\n"
                     "workload: {{kind: logistic, parameters: 10}}\n"
                     "averaging: {}\n",
                     16 - attackers, attackers, conduct, averaging);
}

std::string warnings_of(const std::string& text) {
  const auto loaded = load_text(text, "s.yaml");
  INFO(text);
  for (const auto& what : loaded.errors) FAIL_CHECK(render(what));
  std::string out;
  for (const auto& what : loaded.warnings) out += what.message + "\n";
  return out;
}

} // namespace

TEST_CASE("an aggregator in one word and as a mapping are the same") {
  const auto word = load_text(swarm("{aggregator: centered_clip}"), "a.yaml");
  const auto mapping = load_text(swarm("{aggregator: {kind: centered_clip, radius: 1}}"), "a.yaml");
  REQUIRE(word.value);
  REQUIRE(mapping.value);
  CHECK(word.value->averaging == mapping.value->averaging);
  CHECK(word.value->averaging.aggregator.definition().name == "centered_clip");
  const auto other = load_text(swarm("{aggregator: {kind: centered_clip, radius: 2.5}}"), "a.yaml");
  REQUIRE(other.value);
  CHECK(other.value->averaging.aggregator.chosen().at("radius") == 2.5);
  CHECK(other.value->averaging != word.value->averaging);
}

TEST_CASE("the printed scenario has the aggregator's options and reads back as the same") {
  for (const char* aggregator : {"mean", "{kind: krum, faulty: 2, bucket_size: 2}",
                                 "{kind: trimmed_mean, faulty: 3, nearest_mixing: true}",
                                 "{kind: geometric_median, smoothing: 0.001, iterations: 7}"}) {
    const auto first = load_text(swarm(fmt::format("{{aggregator: {}}}", aggregator)), "a.yaml");
    REQUIRE(first.value);
    const auto text = to_yaml(*first.value);
    INFO(text);
    const auto again = load_text(text, "a.yaml");
    REQUIRE(again.value);
    CHECK(again.value->averaging == first.value->averaging);
  }
}

TEST_CASE("--set changes an aggregator and its options") {
  const std::string sets[] = {"averaging.aggregator.kind=multi_krum",
                              "averaging.aggregator.faulty=4", "averaging.aggregator.chosen=5"};
  const auto loaded = load_text(swarm("{group_size: 16}"), "a.yaml", sets);
  REQUIRE(loaded.value);
  const auto& chosen = loaded.value->averaging.aggregator;
  CHECK(chosen.name() == "multi_krum");
  CHECK(chosen.chosen().at("faulty") == 4);
  CHECK(chosen.chosen().at("chosen") == 5);
}

TEST_CASE("attackers beyond the aggregator's bound are a warning") {
  const char* const flip = "{kind: flipped_signs, strength: 1000}";
  CHECK(warnings_of(swarm("{aggregator: centered_clip}", flip, 3)) == "");
  CHECK(warnings_of(swarm("{aggregator: centered_clip}", flip, 8)) ==
        "8 of 16 hosts attack, and the aggregator 'centered_clip' bears at most 7 in a group of "
        "16\n");
  CHECK(warnings_of(swarm("{aggregator: {kind: trimmed_mean, faulty: 2}}", flip, 3)) ==
        "3 of 16 hosts attack, and the aggregator 'trimmed_mean' bears at most 2 in a group of "
        "16\n");
  CHECK(warnings_of(swarm("{aggregator: {kind: median, bucket_size: 4}}", flip, 3)) ==
        "3 of 16 hosts attack, and the aggregator 'median' bears at most 1 in a group of 16\n");
  CHECK(warnings_of(swarm("{group_size: 16}", flip, 1)) ==
        "1 of 16 hosts attack, and the aggregator 'mean' bears none: one of them decides the "
        "result\n");
  // An attack on messages is not one on values.
  CHECK(warnings_of(swarm("{group_size: 16}", "dropped_messages", 1)) == "");
}
