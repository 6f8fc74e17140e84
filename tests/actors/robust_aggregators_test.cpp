// The robust aggregators of the registry: in rounds, in their verification, and beside attackers.
#include "actors/averaging/aggregator.hpp"
#include "actors/averaging/part_reduction.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/robust/centered_clip.hpp"
#include "tests/actors/support/group_fixture.hpp"
#include "tests/actors/support/round_lab.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

const char* const robust_kinds[] = {"median", "trimmed_mean", "geometric_median",
                                    "krum",   "multi_krum",   "centered_clip"};

/// The options that a test varies.
const option_values plain, in_buckets{{"bucket_size", 2}},
    mixed{{"nearest_mixing", 1}, {"faulty", 1}};

const aggregator_definition& definition(const std::string& name) {
  return *aggregators().find(name);
}

aggregation_setting setting_of(const std::string& name, const option_values& chosen,
                               std::uint64_t values, std::uint64_t chunk) {
  return {&definition(name).options, chosen, values, chunk, 5};
}

struct inputs {
  std::vector<std::vector<float>> values;
  std::vector<std::uint64_t> weights;

  inputs(std::uint64_t seed, std::size_t members, std::size_t size) {
    auto random = stream(seed, "inputs");
    for (std::size_t m = 0; m < members; ++m) {
      auto& one = values.emplace_back(size);
      for (auto& x : one) x = static_cast<float>(1 + random.normal());
      weights.push_back(1 + random.below(9));
    }
  }
  aggregate_claim claim(std::span<const float> result, const aggregation_setting& how) const {
    aggregate_claim out;
    for (std::uint32_t m = 0; m < values.size(); ++m)
      out.inputs.push_back({static_cast<double>(weights[m]), values[m], m});
    out.inputs_begin = out.begin = 20;
    out.result = result;
    out.setting = how;
    return out;
  }
};

/// The aggregate of units of `unit` values.
std::vector<float> aggregate(const std::string& name, const inputs& from,
                             const aggregation_setting& how, std::size_t unit) {
  const auto by = definition(name).make(how);
  std::vector<float> out(from.values.front().size());
  for (std::size_t at = 0; at < out.size(); at += unit) {
    const auto size = std::min(unit, out.size() - at);
    by->open(size, from.weights);
    for (std::uint32_t m = 0; m < from.values.size(); ++m)
      by->add(m, static_cast<double>(from.weights[m]), std::span(from.values[m]).subspan(at, size));
    CHECK(!by->close(std::span(out).subspan(at, size)));
  }
  return out;
}

lab_options lab_of(const std::string& name, const option_values& chosen) {
  lab_options out;
  out.aggregator = name;
  out.aggregation = chosen;
  out.values_per_part = 5;
  for (std::uint32_t m = 0; m < 5; ++m) out.members.push_back({m + 1});
  return out;
}

} // namespace

TEST_CASE("robust aggregators say what they bear and with which options") {
  CHECK(!mean_aggregator().bears);
  for (const auto* name : robust_kinds) {
    CAPTURE(name);
    const auto& one = definition(name);
    CHECK(!one.meaning.empty());
    CHECK(!one.options.empty());
    REQUIRE(one.bears);
  }
  const auto bears = [](const char* name, std::uint64_t members, option_values chosen) {
    const auto out = definition(name).bears(members, {&definition(name).options, chosen});
    return std::pair{out.least_members, out.faulty};
  };
  using both = std::pair<std::uint64_t, std::uint64_t>;
  CHECK(bears("median", 16, {}) == both{1, 7});
  CHECK(bears("trimmed_mean", 16, {{"faulty", 3}}) == both{7, 3});
  CHECK(bears("krum", 16, {{"faulty", 6}}) == both{15, 6});
  CHECK(bears("centered_clip", 15, {}) == both{1, 7});
  // Sixteen members in buckets of two are eight contributions.
  CHECK(bears("median", 16, {{"bucket_size", 2}}) == both{1, 3});
  CHECK(bears("krum", 16, {{"faulty", 2}, {"bucket_size", 2}}) == both{13, 2});
}

TEST_CASE("the check of a robust aggregator accepts its results and finds a changed value") {
  for (const auto* name : robust_kinds)
    for (const auto* chosen : {&plain, &in_buckets, &mixed}) {
      CAPTURE(name);
      const auto how = setting_of(name, *chosen, 33, 8);
      const auto unit = definition(name).unit == aggregation_unit::chunk ? 8 : 33;
      const inputs from(1, 7, 33);
      auto result = aggregate(name, from, how, unit);
      CHECK(!definition(name).verify(from.claim(result, how)));
      for (const std::size_t at : {0, 12, 32}) {
        auto wrong = result;
        wrong[at] += 0.01F;
        const auto found = definition(name).verify(from.claim(wrong, how));
        REQUIRE(found);
        CHECK(found->starts_with(fmt::format("value {} is ", 20 + at)));
        wrong[at] = std::numeric_limits<float>::quiet_NaN();
        CHECK(definition(name).verify(from.claim(wrong, how)));
      }
    }
}

TEST_CASE("a sender of values that are not finite is named and the rest is aggregated") {
  for (const auto* name : robust_kinds) {
    CAPTURE(name);
    inputs from(2, 5, 9);
    from.values[3][4] = std::numeric_limits<float>::infinity();
    const auto by = definition(name).make(setting_of(name, plain, 9, 9));
    by->open(9, from.weights);
    for (std::uint32_t m = 0; m < 5; ++m)
      by->add(m, static_cast<double>(from.weights[m]), from.values[m]);
    std::vector<float> out(9);
    CHECK(by->close(out) == 3);
    by->leave_out(3);
    CHECK(!by->close(out));
    for (const float x : out) CHECK(std::isfinite(x));
  }
}

TEST_CASE("CenteredClip of a chunk clips at the share of the chunk and of the samples") {
  const inputs from(3, 6, 10);
  const option_values chosen{{"radius", 2}, {"batch", 4}};
  const auto got =
      aggregate("centered_clip", from, setting_of("centered_clip", chosen, 40, 10), 10);
  std::vector<kernels::weighted_values> view;
  std::vector<double> radii, expected(10);
  for (std::size_t m = 0; m < 6; ++m) {
    const auto weight = static_cast<double>(from.weights[m]);
    view.push_back({weight, from.values[m]});
    radii.push_back(2 * std::sqrt(10.0 / 40) * std::sqrt(4 / weight));
  }
  kernels::centered_clip<double>(view, radii, {}, {}, expected);
  for (std::size_t j = 0; j < 10; ++j) CHECK(got[j] == static_cast<float>(expected[j]));
}

TEST_CASE("rounds with robust aggregators end with one right result when a member dies") {
  for (const auto* name : robust_kinds)
    for (const auto* chosen : {&plain, &in_buckets, &mixed}) {
      CAPTURE(name);
      std::string seen;
      for (std::uint64_t at = 0;; at += 7) {
        round_lab lab(lab_of(name, *chosen));
        lab.start();
        bool over = false;
        for (std::uint64_t i = 0; i < at && !over; ++i) over = !lab.step();
        if (over) break;
        lab.kill(at % 5, at % 2 == 0);
        if (!lab.run()) FAIL_CHECK("some never end: " << lab.outcomes());
        for (const auto& error : lab.errors()) FAIL_CHECK(at << ": " << error);
        seen += lab.outcomes();
      }
      CHECK(seen.find_first_of("op") != std::string::npos);
    }
}

TEST_CASE("with each robust aggregator two of seven members cannot move the result far") {
  for (const auto* name : robust_kinds) {
    CAPTURE(name);
    group_fixture f;
    f.config.aggregator = &definition(name);
    f.config.aggregation = {{"faulty", 2}};
    f.config.max_norm_ratio = 0; // the outliers are to reach the aggregator
    for (std::uint64_t m = 0; m < 7; ++m)
      f.add(4,
            std::vector<float>(64, m == 3 || m == 5 ? -1e4F : 1 + 0.01F * static_cast<float>(m)));
    f.run();
    for (std::size_t m = 0; m < f.members.size(); ++m) {
      const auto& result = f.result(m);
      REQUIRE(result.succeeded());
      for (const float x : result.values.floats()) CHECK(std::abs(x - 1) < 0.2);
    }
  }
  group_fixture f;
  f.config.max_norm_ratio = 0;
  for (std::uint64_t m = 0; m < 7; ++m)
    f.add(4, std::vector<float>(64, m == 3 || m == 5 ? -1e4F : 1));
  f.run();
  CHECK(f.result(0).values.floats()[0] < -1000);
}
