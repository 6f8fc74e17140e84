// The sessions that hosts get from a scenario's churn. Kolmogorov-Smirnov: P(sqrt(n) D > 1.949) =
// 0.001;
// seeds are fixed.
#include "netem/lifetime_fit.hpp"
#include "scenarios/runner/churn_engine.hpp"
#include "scenarios/schema/churn_presets.hpp"
#include "scenarios/schema/load.hpp"
#include "tests/scenarios/schema/files.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;

namespace {

constexpr double critical = 1.949;

scenario loaded(const std::string& churn, int count = 100) {
  const auto result =
      load_text("stop_time: 1h\nworkload: {kind: timing}\ndevices: {laptop: {samples_per_second: "
                "10}}\nseed: 7\n"
                "peers: {home: {count: " +
                    std::to_string(count) +
                    ", up: 10Mbit, down: 50Mbit, device: laptop, churn: " + churn + "}}\n",
                "s.yaml");
  REQUIRE_MESSAGE(result.value, test::rendered(result));
  return *result.value;
}

struct lengths {
  std::vector<double> stays, gaps; // seconds
};

lengths drawn(const scenario& what, int each = 100) {
  auto plan = plan_churn(what, expand_hosts(what));
  REQUIRE(plan);
  lengths out;
  for (auto& host : *plan) {
    REQUIRE(host);
    duration before{};
    for (int i = 0; i < each; ++i) {
      const auto next = host->sessions.next();
      REQUIRE(next);
      if (i > 0) out.gaps.push_back(to_seconds(next->start - before));
      out.stays.push_back(to_seconds(next->end - next->start));
      before = next->end;
    }
  }
  return out;
}

double scaled(const std::vector<double>& values, const netem::lifetime& what) {
  return netem::ks_distance(values, what) * std::sqrt(static_cast<double>(values.size()));
}

std::vector<std::string> preset_names() {
  std::vector<std::string> out;
  std::istringstream names(churn_preset_names);
  for (std::string name; std::getline(names >> std::ws, name, ',');) out.push_back(name);
  return out;
}

netem::lifetime weibull(double shape, double scale_hours) {
  return {netem::lifetime_kind::weibull,
          from_seconds(scale_hours * 3600 * std::tgamma(1 + 1 / shape)), shape};
}
netem::lifetime exponential(double mean_hours) {
  return {netem::lifetime_kind::exponential, from_seconds(mean_hours * 3600)};
}

} // namespace

TEST_CASE("sessions and gaps of each preset are those that were published") {
  std::map<std::string, std::pair<netem::lifetime, netem::lifetime>> published{
      {"volunteers", {exponential(4), exponential(11.2)}},
      {"overnet", {weibull(0.85, 2.04), weibull(0.44, 2.98)}},
      {"skype", {weibull(0.64, 10.86), weibull(0.63, 9.48)}},
      {"desktop_grid", {weibull(0.45, 4.16), weibull(0.51, 0.74)}},
      {"office", {weibull(0.55, 35.30), weibull(0.60, 9.34)}},
      {"spot_t4", {exponential(2.35), exponential(0.266)}},
      {"spot_v100", {exponential(1.634), exponential(0.545)}}};
  published.at("volunteers").first.at_most = 21h;
  for (const std::string& name : preset_names()) {
    CAPTURE(name);
    REQUIRE(find_churn_preset(name));
    const auto& [stay, gap] = published.at(name);
    const auto all = drawn(loaded("{preset: " + name + ", stationary: false}"));
    CHECK(scaled(all.stays, stay) < critical);
    CHECK(scaled(all.gaps, gap) < critical);
    // The distribution fitted to the draws is the one from which they came. A cut distribution has
    // no fit.
    if (stay.at_most == netem::forever)
      CHECK(scaled(all.stays, netem::fit_lifetime(stay.kind, all.stays)) < critical);
    CHECK(scaled(all.gaps, netem::fit_lifetime(gap.kind, all.gaps)) < critical);
  }
}

TEST_CASE("each way to give a lifetime means the same") {
  const auto one = drawn(loaded("{session: {distribution: weibull, scale: 2h, shape: 0.5}, gap: "
                                "{distribution: gamma, scale: 30min, shape: 4}}"));
  CHECK(scaled(one.stays, {netem::lifetime_kind::weibull, 4h, 0.5}) < critical); // gamma(3) = 2
  CHECK(scaled(one.gaps, {netem::lifetime_kind::gamma, 2h, 4}) < critical);
  const auto two = drawn(loaded("{session: {distribution: log_normal, median: 1h, sigma: 1.2}, "
                                "gap: {distribution: log_normal, mean: 1h, sigma: 1.2}}"));
  const duration mean = from_seconds(3600 * std::exp(0.72));
  CHECK(scaled(two.stays, {netem::lifetime_kind::log_normal, mean, 1.2}) < critical);
  CHECK(scaled(two.gaps, {netem::lifetime_kind::log_normal, 1h, 1.2}) < critical);
  const auto three = drawn(loaded("{session: {distribution: hyperexponential, phases: [{weight: "
                                  "30%, mean: 5min}, {weight: 70%, mean: 6h}]}, "
                                  "gap: {distribution: exponential, mean: 1h, at_most: 2h}}"));
  CHECK(scaled(three.stays,
               {netem::lifetime_kind::hyperexponential, {}, 1, {{0.3, 5min}, {0.7, 6h}}}) <
        critical);
  CHECK(scaled(three.gaps, {netem::lifetime_kind::exponential, 1h, 1, {}, 2h}) < critical);
}

TEST_CASE("options of a scenario override its preset, number by number or as a whole") {
  const auto churn_of = [](const std::string& text) { return loaded(text).peers.front().churn; };
  const auto plain = churn_of("{preset: overnet}");
  CHECK(plain.stationary);
  CHECK(plain.session == find_churn_preset("overnet")->session);
  const auto longer = churn_of("{preset: overnet, session: {mean: 5h}, stationary: false}");
  CHECK(longer.session.distribution == distribution_kind::weibull);
  CHECK(longer.session.mean == 5h);
  CHECK(longer.session.scale == 0s);
  CHECK(longer.session.shape == 0.85);
  CHECK(longer.gap == plain.gap);
  CHECK_FALSE(longer.stationary);
  const auto other =
      churn_of("{preset: volunteers, session: {distribution: exponential, mean: 2h}}");
  CHECK(other.session.at_most == 0s);
  CHECK(churn_of("{preset: volunteers, session: {mean: 2h}}").session.at_most == 21h);
}

TEST_CASE("a resolved scenario says what its presets are, and reads back as the same") {
  for (const std::string& name : preset_names()) {
    const auto before = loaded("{preset: " + name +
                               ", stationary: false, diurnal: {amplitude: 60%, time_zone: -5h}, "
                               "outages: {every: {distribution: exponential, mean: 6h}, lasting: "
                               "{distribution: gamma, mean: 10min, shape: 2}, share: 30%}}");
    const auto after = load_text(to_yaml(before), "s.yaml");
    REQUIRE_MESSAGE(after.value, test::rendered(after));
    CHECK(*after.value == before);
    CHECK(to_yaml(before).find("time_zone: -5h") != std::string::npos);
  }
}

TEST_CASE("a population begins as it goes on") {
  const auto what = loaded("{preset: volunteers}", 4000);
  auto plan = plan_churn(what, expand_hosts(what));
  REQUIRE(plan);
  int there = 0;
  for (auto& host : *plan) there += host->sessions.next()->start == 0s;
  const double mean = 4 * (1 - std::exp(-21.0 / 4)),
               share = mean / (mean + 11.2); // 26 % of sahajBERT's 40 are 10.5
  CHECK(std::abs(there - 4000 * share) < 4 * std::sqrt(4000 * share * (1 - share)));
}

TEST_CASE("the hosts of groups that share a trace play its peers in order") {
  const auto result = load_text(
      "stop_time: 1h\nworkload: {kind: timing}\ndevices: {laptop: {samples_per_second: 10}}\n"
      "x-line: &line {up: 10Mbit, down: 50Mbit, device: laptop}\n"
      "peers:\n"
      "  a: {<<: *line, count: 2, churn: {trace: tests/scenarios/traces/events.jsonl}}\n"
      "  b: {<<: *line, count: 4, start: 10s, churn: {trace: tests/scenarios/traces/events.jsonl, "
      "speed: 2}}\n",
      "s.yaml");
  REQUIRE_MESSAGE(result.value, test::rendered(result));
  auto plan = plan_churn(*result.value, expand_hosts(*result.value));
  REQUIRE(plan);
  REQUIRE(plan->size() == 6);
  CHECK((*plan)[0]->sessions.next() == netem::session{0s, 5min});  // a-0 is n-0
  CHECK((*plan)[2]->sessions.next() == netem::session{0s, 1min});  // b-0 is n-2, twice as fast
  CHECK((*plan)[4]->sessions.next() == netem::session{90s, 150s}); // b-2 is n-4
  CHECK((*plan)[4]->offset == 10s);
}

TEST_CASE("a glob gives each host a file of its own, in the order of their names") {
  auto what = loaded("{trace: 'tests/scenarios/traces/profiles/host-[ac].trace'}", 2);
  const auto refused = plan_churn(what, expand_hosts(what));
  REQUIRE(refused); // both begin again after three minutes
  CHECK((*refused)[1].has_value());
}
