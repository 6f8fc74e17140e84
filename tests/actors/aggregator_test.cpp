// Aggregators: the registry, the verification of the mean, and rounds with an aggregator by part.
#include "actors/averaging/aggregator.hpp"
#include "actors/averaging/part_reduction.hpp"
#include "actors/probes.hpp"
#include "tests/actors/support/group_fixture.hpp"
#include "tests/actors/support/round_lab.hpp"
#include "tests/actors/support/test_aggregators.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

payload floats(std::initializer_list<float> values) {
  return payload{std::vector<float>(values)};
}

std::vector<float> values_of(const payload& from) {
  return {from.floats().begin(), from.floats().end()};
}

averaging_config with(const aggregator_definition& which) {
  averaging_config out;
  out.aggregator = &which;
  return out;
}

lab_options group_of(std::uint32_t size, const aggregator_definition& which) {
  lab_options out;
  out.aggregator = which.name;
  // At least three chunks.
  out.values_per_part = 5;
  for (std::uint32_t m = 0; m < size; ++m) out.members.push_back({m + 1});
  return out;
}

} // namespace

TEST_CASE("aggregators are found by name, and the mean is the default") {
  CHECK(aggregators().find("mean") == &mean_aggregator());
  CHECK(averaging_config{}.aggregator == &mean_aggregator());
  CHECK(mean_aggregator().unit == aggregation_unit::chunk);
  CHECK(aggregators().find("means") == nullptr);
  CHECK(std::string_view{aggregators().names()}.starts_with("mean"));
  const auto& added = test_median();
  CHECK(aggregators().find("test_median") == &added);
  CHECK(std::string_view{aggregators().names()}.find(", test_median") != std::string_view::npos);
  CHECK(aggregators().find("mean") == &mean_aggregator());
}

TEST_CASE("the mean's check accepts the weighted mean up to rounding, and otherwise says what the "
          "result should be") {
  const std::vector<float> a{1, 2, 3}, b{5, 6, 7};
  std::vector<float> result{4, 5, 6};
  aggregate_claim claim;
  claim.inputs = {{1, a}, {3, b}};
  claim.inputs_begin = claim.begin = 10;
  claim.result = result;
  const auto& verify = mean_aggregator().verify;
  CHECK(!verify(claim));
  result[1] = 4;
  CHECK(verify(claim).value() == "value 11 is 4, but the weighted mean of its 2 senders is 5");
  claim.allowed.relative = 0.5;
  CHECK(!verify(claim));
  claim.allowed = {.mean_loss = 0.2};
  CHECK(!verify(claim));
  result[1] = std::numeric_limits<float>::quiet_NaN();
  CHECK(verify(claim));
}

TEST_CASE(
    "the mean's check reads a stretch of longer inputs at the given stride and at its last value") {
  const std::vector<float> a{9, 1, 2, 3, 4, 5, 9};
  std::vector<float> result{1, 2, 3, 4, 5};
  aggregate_claim claim;
  claim.inputs = {{2, a}};
  claim.inputs_begin = 20;
  claim.begin = 21;
  claim.result = result;
  CHECK(!mean_aggregator().verify(claim));
  claim.start = 1;
  claim.stride = 2;
  result = {0, 2, 0, 4, 5};
  CHECK(!mean_aggregator().verify(claim));
  result.back() = 0;
  CHECK(mean_aggregator().verify(claim));
}

TEST_CASE(
    "by part, no chunk comes back before the part is complete, and all have one list of senders") {
  part_reduction part({20, 8}, {1, 1, 1}, false, with(test_median()), 0s);
  CHECK(part.open({true, true, true}, 0s) == chunk_set{true, true, true});
  for (std::uint32_t k = 0; k < 3; ++k)
    for (std::uint32_t m = 0; m < 3; ++m) {
      CHECK(!part.next());
      const auto x = static_cast<float>(10 * k + 3 * ((m + k) % 3));
      CHECK(part.add(m, k, k < 2 ? floats({x, x}) : floats({x}), 0s) == part_reduction::taken::yes);
    }
  for (std::uint32_t k = 0; k < 3; ++k) {
    const auto done = part.next();
    REQUIRE(done);
    CHECK(done->chunk == k);
    CHECK(done->senders == std::vector<std::uint32_t>{0, 1, 2});
    const auto x = static_cast<float>(10 * k + 3);
    CHECK(values_of(done->values) == (k < 2 ? std::vector<float>{x, x} : std::vector<float>{x}));
  }
  CHECK(!part.next());
  CHECK(part.add(0, 0, floats({1, 1}), 0s) == part_reduction::taken::wrong);
}

TEST_CASE(
    "by part, a sender that is left out half-way is in no chunk, and a complete one is in all") {
  part_reduction part({16, 8}, {1, 1, 1, 1}, false, with(test_median()), 0s);
  part.open({true, true}, 0s);
  for (std::uint32_t m : {0u, 1u, 2u}) part.add(m, 0, floats({static_cast<float>(m), 7}), 0s);
  part.add(0, 1, floats({1, 1}), 0s);
  part.leave_out(0); // this sender has delivered all chunks
  part.leave_out(1); // this one has not
  CHECK(part.add(1, 1, floats({1, 1}), 0s) == part_reduction::taken::too_late);
  part.add(2, 1, floats({2, 2}), 0s);
  CHECK(!part.next());
  part.leave_out(3);
  for (std::uint32_t k = 0; k < 2; ++k) {
    const auto done = part.next();
    REQUIRE(done);
    CHECK(done->senders == std::vector<std::uint32_t>{0, 2});
  }
}

TEST_CASE("by part, the sender of a value that is not finite is in no chunk and is reported once") {
  part_reduction part({16, 8}, {1, 1}, false, with(test_middle_norm()), 0s);
  part.open({true, true}, 0s);
  part.add(0, 0, floats({1, 1}), 0s);
  part.add(0, 1, floats({1, std::numeric_limits<float>::infinity()}), 0s);
  part.add(1, 0, floats({4, 4}), 0s);
  part.add(1, 1, floats({5, 5}), 0s);
  const auto first = part.next(), second = part.next();
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->refused.faulty == std::vector<std::uint32_t>{0});
  CHECK(second->refused.faulty.empty());
  CHECK(first->senders == std::vector<std::uint32_t>{1});
  CHECK(values_of(second->values) == std::vector<float>{5, 5});
}

TEST_CASE(
    "by part, chunks that are opened later come from the same result and need no more pieces") {
  part_reduction part({16, 8}, {1, 1}, false, with(test_middle_norm()), 0s);
  CHECK(part.open({false, true}, 0s) == chunk_set{true, true});
  for (std::uint32_t m = 0; m < 2; ++m)
    for (std::uint32_t k = 0; k < 2; ++k)
      part.add(m, k, floats({static_cast<float>(m), static_cast<float>(k)}), 0s);
  auto done = part.next();
  REQUIRE(done);
  CHECK(done->chunk == 1);
  CHECK(!part.next());
  CHECK(part.open({true, false}, 0s) == chunk_set{false, false});
  done = part.next();
  REQUIRE(done);
  CHECK(done->chunk == 0);
  CHECK(values_of(done->values) == std::vector<float>{0, 0});
  CHECK(!part.next());
}

TEST_CASE("by part, size-only parts have senders, and a part without senders has no values") {
  part_reduction size_only({16, 8}, {1, 1}, true, with(test_median()), 0s);
  size_only.open({true, true}, 0s);
  for (std::uint32_t m = 0; m < 2; ++m)
    for (std::uint32_t k = 0; k < 2; ++k) size_only.add(m, k, payload::size_only(8), 0s);
  const auto done = size_only.next();
  REQUIRE(done);
  CHECK(done->values.is_size_only());
  CHECK(done->values.size() == 8);
  CHECK(done->senders == std::vector<std::uint32_t>{0, 1});

  part_reduction nobody({8, 8}, {1}, false, with(test_median()), 0s);
  nobody.open({true}, 0s);
  nobody.leave_out(0);
  const auto none = nobody.next();
  REQUIRE(none);
  CHECK(none->senders.empty());
}

TEST_CASE("a round with an aggregator by part gives all members its result") {
  for (const auto* which : {&test_median(), &test_middle_norm()}) {
    round_lab lab(group_of(4, *which));
    lab.start();
    CHECK(lab.run());
    CHECK(lab.outcomes() == "oooo");
    for (const auto& error : lab.errors()) FAIL_CHECK(which->name << ": " << error);
  }
}

TEST_CASE("an aggregator by part makes whole parts when each member is killed at each state of the "
          "round") {
  for (const bool lost : {false, true})
    for (std::uint32_t size : {4u, 5u})
      for (std::uint32_t who = 0; who < size; ++who) {
        std::string seen;
        // Chunks of one part have different senders.
        bool two_reducers = false;
        for (std::uint64_t at = 0;; ++at) {
          round_lab lab(group_of(size, test_middle_norm()));
          lab.start();
          bool over = false;
          for (std::uint64_t i = 0; i < at && !over; ++i) over = !lab.step();
          if (over) break;
          lab.kill(who, lost);
          const auto what = fmt::format("{} of {} killed{} after {} messages", who, size,
                                        lost ? " with all under way" : "", at);
          if (!lab.run()) FAIL_CHECK(what << ": some never end: " << lab.outcomes());
          for (const auto& error : lab.errors())
            FAIL_CHECK(what << ": " << error << " (" << lab.outcomes() << ")");
          seen += lab.outcomes();
          for (std::uint32_t m = 0; m < size; ++m) {
            if (!lab.ended(m)) continue;
            const auto& parts = lab.result(m).parts;
            for (std::size_t i = 1; i < parts.size(); ++i)
              two_reducers = two_reducers || parts[i].part == parts[i - 1].part;
            for (const auto& part : parts)
              for (std::uint32_t living = 0; living < size; ++living)
                if (living != who &&
                    !std::binary_search(part.senders.begin(), part.senders.end(), living))
                  FAIL_CHECK(what << ": member " << living << " lives and is not in part "
                                  << part.part);
          }
        }
        CHECK(two_reducers);
        CHECK(seen.find('p') !=
              // The part was taken over, or pieces of it were missing.
              std::string::npos);
        CHECK(seen.find('o') != std::string::npos);
      }
}

TEST_CASE(
    "an aggregator by part gives one right result under random kills, cuts and orders of arrival") {
  std::uint64_t completed = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    auto random = stream(seed, "aggregator_faults");
    auto options = group_of(2 + static_cast<std::uint32_t>(random.below(5)), test_middle_norm());
    options.shuffle = seed;
    options.window_chunks = 1 + static_cast<std::uint32_t>(random.below(4));
    round_lab lab(options);
    lab.start();
    for (std::uint64_t faults = 1 + random.below(4); faults > 0; --faults) {
      for (std::uint64_t i = random.below(120); i > 0; --i) lab.step();
      const auto a = static_cast<std::uint32_t>(random.below(lab.size())),
                 b = static_cast<std::uint32_t>(random.below(lab.size()));
      const bool lost = random.below(2) == 0;
      if (random.below(2) == 0)
        lab.kill(a, lost);
      else if (a != b)
        lab.cut(a, b, lost);
    }
    if (!lab.run()) FAIL_CHECK("seed " << seed << ": some never end: " << lab.outcomes());
    for (const auto& error : lab.errors())
      FAIL_CHECK("seed " << seed << ": " << error << " (" << lab.outcomes() << ")");
    const auto outcomes = lab.outcomes();
    completed += outcomes.find_first_of("op") != std::string::npos ? 1 : 0;
  }
  CHECK(completed > 200);
}

TEST_CASE("with the median, an outlier does not move the result, even when another member dies "
          "half-way") {
  for (const auto point : {std::string_view{}, probes::first_part_sent, probes::half_replied}) {
    group_fixture f;
    f.config.aggregator = &test_median();
    f.config.max_norm_ratio = 0; // the outlier is to reach the aggregator
    for (std::uint64_t m = 0; m < 5; ++m)
      f.add(m + 1, std::vector<float>(64, m == 3 ? 1e6F : static_cast<float>(m)));
    f.kill_at(1, point);
    f.run();
    CHECK(f.members[1].host->alive() == point.empty());
    std::size_t completed = 0;
    for (std::size_t m = 0; m < f.members.size(); ++m) {
      if (!f.members[m].host->alive()) continue;
      const auto& result = f.result(m);
      CAPTURE(m);
      CHECK(result.succeeded());
      completed += result.succeeded() ? 1 : 0;
      // The median of 0, 1, 2, 10^6 and 4 is 2. Without 1, the lower median is 2, too.
      for (const float x : result.values.floats()) CHECK(x == 2);
    }
    CHECK(completed >= 4);
    for (const auto& [who, what] : f.world.observed<misbehaved>())
      FAIL_CHECK(who << " says of " << what.culprit << ": " << what.why);
  }
}
