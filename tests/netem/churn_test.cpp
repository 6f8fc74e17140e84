// Compares drawn sessions with their distributions. Kolmogorov-Smirnov: D = sup |F_n(x) - F(x)|,
// and P(sqrt(n) D > 1.949) = 0.001 for large n. Seeds are fixed, so a failure is a bug and not bad
// luck.
#include "netem/churn.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::netem;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t draws = 20'000;

struct drawn_lengths {
  std::vector<double> stays, gaps; // seconds
};

drawn_lengths draw(const lifetime& stay, const lifetime& gap, std::size_t count = draws) {
  auto source = session_source::drawn(5, "home-0", stay, gap);
  drawn_lengths out;
  duration before{};
  for (std::size_t i = 0; i < count; ++i) {
    const auto next = source.next();
    REQUIRE(next);
    if (i > 0) out.gaps.push_back(to_seconds(next->start - before));
    out.stays.push_back(to_seconds(next->end - next->start));
    before = next->end;
  }
  return out;
}

double distance(std::vector<double> values, const std::function<double(double)>& cdf) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double f = cdf(values[i]);
    worst = std::max({worst, f - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - f});
  }
  return worst * std::sqrt(n);
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::function<double(double)> weibull_cdf(double mean, double shape) {
  const double scale = mean / std::tgamma(1 + 1 / shape);
  return [=](double x) { return 1 - std::exp(-std::pow(x / scale, shape)); };
}

std::vector<session> first(session_source source, std::size_t count) {
  std::vector<session> out;
  for (std::size_t i = 0; i < count; ++i)
    if (const auto next = source.next()) out.push_back(*next);
  return out;
}

const lifetime hour{lifetime_kind::exponential, 1h, 1};
const lifetime heavy{lifetime_kind::weibull, 40min, 0.6};

constexpr double critical = 1.949; // alpha 0.001

} // namespace

TEST_CASE("exponential sessions and gaps follow the exponential distribution") {
  const auto drawn = draw(hour, {lifetime_kind::exponential, 5min, 1});
  CHECK(distance(drawn.stays, [](double x) { return 1 - std::exp(-x / 3600); }) < critical);
  CHECK(distance(drawn.gaps, [](double x) { return 1 - std::exp(-x / 300); }) < critical);
  CHECK(mean_of(drawn.stays) == doctest::Approx(3600).epsilon(0.02));
  CHECK(mean_of(drawn.gaps) == doctest::Approx(300).epsilon(0.02));
}

TEST_CASE("Weibull sessions and gaps follow the Weibull distribution of their mean and shape") {
  for (const double shape : {0.6, 0.8, 1.0, 2.0, 5.0}) {
    CAPTURE(shape);
    const auto drawn =
        draw({lifetime_kind::weibull, 40min, shape}, {lifetime_kind::weibull, 90s, shape});
    CHECK(distance(drawn.stays, weibull_cdf(2400, shape)) < critical);
    CHECK(distance(drawn.gaps, weibull_cdf(90, shape)) < critical);
    // At shape 0.6 the deviation is 1.76 means. So 20,000 draws know their mean to 1.2 %, and
    // 200,000 draws to 0.4 %.
    const auto many = draw({lifetime_kind::weibull, 40min, shape},
                           {lifetime_kind::weibull, 90s, shape}, 10 * draws);
    CHECK(mean_of(many.stays) == doctest::Approx(2400).epsilon(0.02));
    CHECK(mean_of(many.gaps) == doctest::Approx(90).epsilon(0.02));
  }
}

TEST_CASE("the test of the distributions notices a wrong shape or mean") {
  const auto drawn = draw(heavy, hour);
  CHECK(distance(drawn.stays, weibull_cdf(2400, 0.62)) > critical);
  CHECK(distance(drawn.stays, weibull_cdf(2600, 0.6)) > critical);
  CHECK(distance(drawn.gaps, [](double x) { return 1 - std::exp(-x / 3900); }) > critical);
}

TEST_CASE("sessions and gaps of one host are uncorrelated") {
  const auto drawn = draw(hour, hour);
  double product = 0;
  for (std::size_t i = 0; i + 1 < draws; ++i)
    product += (drawn.stays[i] / 3600 - 1) * (drawn.gaps[i] / 3600 - 1);
  CHECK(std::abs(product / draws) < 4 / std::sqrt(static_cast<double>(draws)));
}

TEST_CASE("the Weibull scale agrees with the gamma function") {
  for (double shape = 0.1; shape <= 100; shape *= 1.07) {
    CAPTURE(shape);
    CHECK(weibull_scale(1, shape) * std::tgamma(1 + 1 / shape) ==
          doctest::Approx(1).epsilon(1e-13));
  }
  CHECK(weibull_scale(60, 1) == doctest::Approx(60).epsilon(1e-13));
  CHECK(weibull_scale(1, 0.5) == doctest::Approx(0.5).epsilon(1e-13)); // gamma(3) = 2
}

TEST_CASE("a host that never leaves has one session without an end") {
  auto source = session_source::drawn(1, "home-0", {}, {});
  CHECK(source.next() == session{0s, forever});
  CHECK_FALSE(source.next());
  CHECK_FALSE(source.next());
}

TEST_CASE("a host with an endless gap does not come back") {
  auto source = session_source::drawn(1, "home-0", hour, {});
  const auto only = source.next();
  REQUIRE(only);
  CHECK(only->start == 0s);
  CHECK(only->end < forever);
  CHECK_FALSE(source.next());
}

TEST_CASE("the same seed and host give the same sessions") {
  CHECK(first(session_source::drawn(9, "a-1", heavy, hour), 500) ==
        first(session_source::drawn(9, "a-1", heavy, hour), 500));
  CHECK(first(session_source::drawn(9, "a-1", heavy, hour), 5) !=
        first(session_source::drawn(10, "a-1", heavy, hour), 5));
  CHECK(first(session_source::drawn(9, "a-1", heavy, hour), 5) !=
        first(session_source::drawn(9, "a-2", heavy, hour), 5));
}

TEST_CASE("the first sessions of a seed are these on every machine") {
  const auto exponential =
      first(session_source::drawn(1, "home-0", hour, {lifetime_kind::exponential, 5min, 1}), 2);
  const auto weibull = first(session_source::drawn(1, "home-0", heavy, heavy), 2);
  CHECK(exponential[0].end.count() == 4'982'706'789'006);
  CHECK(exponential[1].start.count() == 5'255'789'057'907);
  CHECK(weibull[0].end.count() == 2'742'007'536'345);
  CHECK(weibull[1].end.count() == 24'311'285'035'880);
}

TEST_CASE("the draws of one host change no other host's, and gaps do not change sessions") {
  auto a = session_source::drawn(3, "a-0", hour, heavy),
       b = session_source::drawn(3, "b-0", hour, heavy);
  std::vector<session> mixed;
  for (int i = 0; i < 100; ++i) {
    for (int extra = 0; extra <= i % 3; ++extra) (void)b.next();
    mixed.push_back(*a.next());
  }
  CHECK(mixed == first(session_source::drawn(3, "a-0", hour, heavy), 100));

  const auto near =
      first(session_source::drawn(3, "a-0", hour, {lifetime_kind::exponential, 1min, 1}), 100);
  for (std::size_t i = 0; i < near.size(); ++i)
    CHECK(near[i].end - near[i].start == mixed[i].end - mixed[i].start);
}

TEST_CASE("sessions are in order and never empty, however extreme the lifetimes") {
  const std::vector<lifetime> extremes{
      {lifetime_kind::exponential, 1ns, 1},   {lifetime_kind::weibull, 1h, 0.1},
      {lifetime_kind::weibull, 1ns, 100},     {lifetime_kind::exponential, forever, 1},
      {lifetime_kind::weibull, forever, 0.1}, {lifetime_kind::exponential, 24h * 36500, 1}};
  for (const auto& stay : extremes)
    for (const auto& gap : extremes) {
      auto source = session_source::drawn(2, "x-0", stay, gap);
      duration before{};
      for (int i = 0; i < 1000; ++i) {
        const auto next = source.next();
        if (!next) break;
        REQUIRE(next->start >= before);
        REQUIRE(next->end - next->start >= shortest_lifetime);
        if (i > 0) REQUIRE(next->start - before >= shortest_lifetime);
        before = next->end;
      }
    }
}

TEST_CASE("a replayed source gives the sessions of the trace and then none") {
  const auto sessions =
      std::make_shared<const std::vector<session>>(std::vector<session>{{0s, 5s}, {7s, 9s}});
  auto one = session_source::replayed(sessions), other = session_source::replayed(sessions);
  CHECK(one.next() == session{0s, 5s});
  CHECK(other.next() == session{0s, 5s});
  CHECK(one.next() == session{7s, 9s});
  CHECK_FALSE(one.next());
}

TEST_CASE("a stationary host is up at any time with the probability of its share of time") {
  // The host is up for 2 of 7 hours. A session found at a random time is longer than a drawn one,
  // and half of it is left on average.
  const lifetime stay{lifetime_kind::weibull, 2h, 0.7}, away{lifetime_kind::log_normal, 5h, 1};
  constexpr int hosts = 4000;
  std::vector<int> there(3, 0);
  const std::vector<duration> times{0s, 90min, 9h};
  for (int i = 0; i < hosts; ++i) {
    auto source = session_source::drawn(4, "s-" + std::to_string(i), stay, away, {true, {}});
    std::vector<session> all = first(std::move(source), 200);
    for (std::size_t t = 0; t < times.size(); ++t)
      there[t] += std::any_of(all.begin(), all.end(), [&](const session& s) {
        return s.start <= times[t] && times[t] < s.end;
      });
  }
  for (const int count : there)
    CHECK(std::abs(count - hosts * 2.0 / 7) < 4 * std::sqrt(hosts * 2.0 / 7 * 5 / 7));
}

TEST_CASE("at_most changes the lengths of a stationary process and not the probability to begin in "
          "a session") {
  // The mean of exponential(4 h) cut at 21 h is 4 (1 - exp(-5.25)) = 3.979 h.
  const lifetime stay{lifetime_kind::exponential, 4h, 1, {}, 1h},
      away{lifetime_kind::exponential, 1h, 1};
  const double mean = 4 * (1 - std::exp(-0.25)), share = mean / (mean + 1);
  constexpr int hosts = 4000;
  int there = 0;
  for (int i = 0; i < hosts; ++i)
    there +=
        session_source::drawn(4, "s-" + std::to_string(i), stay, away, {true, {}}).next()->start ==
        0s;
  CHECK(std::abs(there - hosts * share) < 4 * std::sqrt(hosts * share * (1 - share)));
}

TEST_CASE("arrivals with a daily rhythm are an inhomogeneous Poisson process") {
  // Short sessions and exponential gaps give arrivals at the rate a(t) / mean. The chi-squared test
  // by hour of day has 24 cells: P(> 49.7) = 0.001.
  const daily_rhythm day{0.8, 20h};
  std::vector<double> seen(24, 0);
  double total = 0;
  for (int host = 0; host < 200; ++host) {
    auto source =
        session_source::drawn(6, "d-" + std::to_string(host), {lifetime_kind::exponential, 1s, 1},
                              {lifetime_kind::exponential, 6h, 1}, {false, day});
    (void)source.next();
    for (auto next = source.next(); next && next->start < 24h * 100; next = source.next()) {
      ++seen[static_cast<std::size_t>(next->start / 1h % 24)];
      ++total;
    }
  }
  // over whole days the mean gap does not change
  CHECK(total == doctest::Approx(200 * 400).epsilon(0.02));
  double chi = 0;
  for (int hour = 0; hour < 24; ++hour) {
    const double pi2 = 2 * 3.141592653589793;
    const double swing = std::sin(pi2 * (hour + 1 - 20) / 24) - std::sin(pi2 * (hour - 20) / 24);
    const double expected = total * (1.0 / 24 + 0.8 * swing / pi2);
    chi += (seen[static_cast<std::size_t>(hour)] - expected) *
           (seen[static_cast<std::size_t>(hour)] - expected) / expected;
  }
  CHECK(chi < 49.7);
}

TEST_CASE("a gap ends when the integral of the day's rhythm reaches it") {
  const daily_rhythm day{1, 12h};
  CHECK(end_of_gap({}, 5h, 3h) == 8h);
  CHECK(to_seconds(end_of_gap(day, 5h, 24h)) == doctest::Approx(29 * 3600).epsilon(1e-9));
  CHECK(end_of_gap(day, 5h, forever) == forever);
  // From midnight to noon half of a day passes, since the integral of 1 - cos is symmetric about
  // noon.
  CHECK(to_seconds(end_of_gap(day, 0s, 12h)) == doctest::Approx(12 * 3600));
  // Around the peak, a gap passes twice as fast.
  CHECK(to_seconds(end_of_gap(day, 12h - 1s, 4s)) == doctest::Approx(12 * 3600 + 1).epsilon(1e-6));
}

TEST_CASE("an outage strikes its share of the group at once and then ends") {
  const outages by{{lifetime_kind::exponential, 10h, 1}, {lifetime_kind::exponential, 1h, 1}, 0.3};
  constexpr int hosts = 600;
  std::map<duration, int> ends;
  for (int i = 0; i < hosts; ++i) {
    const std::string name = "o-" + std::to_string(i);
    auto source = session_source::drawn(8, name, {}, {}).interrupted(8, "o", name, by, 0s);
    duration before{};
    for (auto next = source.next(); next && next->start < 2000h; next = source.next()) {
      REQUIRE(next->start >= before);
      if (next->end < 1900h) ++ends[next->end];
      before = next->end;
    }
  }
  CHECK(ends.size() > 150); // 2000 h / 11 h
  double struck = 0;
  for (const auto& [when, count] : ends) {
    CHECK(std::abs(count - 0.3 * hosts) < 5 * std::sqrt(hosts * 0.3 * 0.7));
    struck += count;
  }
  CHECK(struck / static_cast<double>(ends.size()) == doctest::Approx(0.3 * hosts).epsilon(0.02));
}

TEST_CASE("sessions that no outage touches do not change") {
  const auto sessions = std::make_shared<const std::vector<session>>(
      std::vector<session>{{0s, 10h}, {11h, 12h}, {13h, 400h}});
  const outages by{{lifetime_kind::exponential, 30h, 1}, {lifetime_kind::exponential, 5h, 1}, 1};
  const auto late =
      first(session_source::replayed(sessions).interrupted(3, "g", "g-0", by, 0s), 100);
  const auto shifted =
      first(session_source::replayed(sessions).interrupted(3, "g", "g-1", by, 100h), 100);
  REQUIRE(late.size() > 3);
  CHECK(late.front().start == 0s);
  CHECK(late.back().end == 400h);
  // Outages belong to the group. A host with a later time 0 meets them earlier in its own time.
  std::vector<duration> ends;
  for (const session& s : late) ends.push_back(s.end - 100h);
  int common = 0;
  for (const session& s : shifted) common += std::count(ends.begin(), ends.end(), s.end) > 0;
  CHECK(common > 3);
}
