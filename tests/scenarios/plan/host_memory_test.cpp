#include "scenarios/plan/host_memory.hpp"
#include "scenarios/schema/load.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace shoal;
using scenarios::memory_needs_of;

namespace {

scenarios::scenario loaded(const std::string& file, std::vector<std::string> sets = {}) {
  auto out = scenarios::load(file, sets);
  REQUIRE(out.value);
  return *out.value;
}

} // namespace

TEST_CASE("a host needs memory for the whole model unless it holds a stage") {
  const auto lab = memory_needs_of(loaded("scenarios/swarm/lab.yaml"));
  REQUIRE(lab.size() == 1);
  CHECK(lab.front().what == "the whole model");
  // For each parameter 88 bytes, and nine times the 8 bytes of AdamW's state.
  CHECK(lab.front().bytes == 160 * 2'000'000U);
  CHECK(lab.front().has == std::uint64_t{24} << 30);
  CHECK(lab.front().fits());

  const auto staged = memory_needs_of(loaded("scenarios/swarm/volunteers.yaml"));
  REQUIRE(staged.size() == 3);
  CHECK(staged[0].what == "stage 0");
  CHECK(staged[2].what == "its part of a batch between the stages");
  CHECK(staged[0].has == 0);
  CHECK(staged[0].fits());
  const auto whole =
      memory_needs_of(loaded("scenarios/swarm/volunteers.yaml",
                             {"training={method: synchronous, target_batch: 64}",
                              "peers.laptop.role=trainer", "peers.desktop.role=trainer"}));
  CHECK(whole[0].what == "the whole model");
  CHECK(whole[0].bytes > 2 * staged[0].bytes);
}

TEST_CASE("a host does not fit when its device has less memory than it needs") {
  const auto needs = memory_needs_of(loaded("scenarios/swarm/large-model.yaml"));
  REQUIRE(needs.size() == 1);
  CHECK(!needs.front().fits());
  CHECK(needs.front().bytes == 160 * 300'000'000ULL);
}

TEST_CASE("the estimate of memory knows transformers and no other workload") {
  const auto transformer = scenarios::memory_choices_of(loaded("scenarios/swarm/volunteers.yaml"));
  REQUIRE(transformer);
  REQUIRE(*transformer);
  CHECK((*transformer)->shape.layers == 4);
  CHECK((*transformer)->batch == 4);
  const auto sizes = scenarios::memory_choices_of(loaded("scenarios/swarm/lab.yaml"));
  REQUIRE(sizes);
  CHECK(!*sizes);
}
