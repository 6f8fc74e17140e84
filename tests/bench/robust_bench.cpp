// Robust aggregators beside the plain mean of the same contributions, on one thread. The sides take
// turns in each round, and times are those of the thread on a processor. GB/s are of contributions
// read once, 4 bytes a value, however often a method reads them. CenteredClip is compared with its
// plain iteration first. Usage: robust_bench [MEMBERS [VALUES [UNIT [ROUNDS]]]]
//   prints one line for each aggregator: the median of its GB/s, and the median and the quartiles
//   of its time over the mean's in the same round
#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/robust/centered_clip.hpp"
#include "kernels/robust/coordinate_median.hpp"
#include "kernels/robust/geometric_median.hpp"
#include "kernels/robust/krum.hpp"
#include "kernels/robust/trimmed_mean.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

namespace {

using inputs = std::vector<weighted_values>;
using method = std::function<void(const inputs&, std::span<float>)>;

struct side {
  std::string name;
  method run;
  std::vector<double> seconds{};
};

/// Time of this thread on a processor, so that other work of the machine counts little.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds(const std::function<void()>& work) {
  const double start = processor_seconds();
  work();
  return processor_seconds() - start;
}

double quantile(std::vector<double> of, double at) {
  std::sort(of.begin(), of.end());
  return of[static_cast<std::size_t>(at * static_cast<double>(of.size() - 1) + 0.5)];
}

/// CenteredClip by the iteration of its definition: two passes over the contributions in each step.
std::size_t plain_clip(const inputs& of, double radius, std::span<float> out) {
  std::vector<double> v(out.size()), step(out.size());
  coordinate_median<double>(of, middle::lower, v);
  double weight = 0;
  for (const auto& one : of) weight += one.weight;
  for (std::size_t t = 1; t <= 500; ++t) {
    std::fill(step.begin(), step.end(), 0.0);
    for (const auto& one : of) {
      double square = 0;
      for (std::size_t j = 0; j < v.size(); ++j) {
        const double from = static_cast<double>(one.values[j]) - v[j];
        square += from * from;
      }
      const double share = one.weight / weight * std::min(1.0, radius / std::sqrt(square));
      for (std::size_t j = 0; j < v.size(); ++j)
        step[j] += share * (static_cast<double>(one.values[j]) - v[j]);
    }
    double length = 0;
    for (std::size_t j = 0; j < v.size(); ++j) v[j] += step[j], length += step[j] * step[j];
    if (std::sqrt(length) <= 1e-9 * radius || t == 500) {
      for (std::size_t j = 0; j < v.size(); ++j) out[j] = static_cast<float>(v[j]);
      return t;
    }
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, std::size_t standard) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : standard;
  };
  const std::size_t members = argument(1, 16), values = argument(2, 4'000'000),
                    unit = argument(3, 65'536), rounds = argument(4, 9);
  SHOAL_CHECK(members > 2 && values > 0 && unit > 0 && rounds > 0, "something to do");
  rng random = stream(1, "robust bench");
  std::vector<std::vector<float>> owned(members, std::vector<float>(values));
  for (std::size_t m = 0; m < members; ++m)
    for (auto& x : owned[m])
      x = static_cast<float>(m < members * 7 / 16 ? -1000 * random.normal() : 1 + random.normal());
  const auto radius = std::sqrt(static_cast<double>(unit));
  std::vector<double> radii(members, radius);
  clip_outcome last;
  std::vector<side> sides{
      {"mean", [](const inputs& of, std::span<float> out) { weighted_mean(of, out); }},
      {"median", [](const inputs& of,
                    std::span<float> out) { coordinate_median<float>(of, middle::mean, out); }},
      {"trimmed_mean",
       [&](const inputs& of, std::span<float> out) {
         trimmed_mean<float>(of, (members - 1) / 3, out);
       }},
      {"centered_clip",
       [&](const inputs& of, std::span<float> out) {
         last = centered_clip<float>(of, radii, {}, {}, out);
       }},
      {"centered_clip, plain iteration",
       [&](const inputs& of, std::span<float> out) { plain_clip(of, radius, out); }},
      {"multi_krum",
       [&](const inputs& of, std::span<float> out) {
         multi_krum<float>(of, (members - 3) / 2, members - (members - 3) / 2, out);
       }},
      {"geometric_median", [](const inputs& of, std::span<float> out) {
         geometric_median<float>(of, {}, {.smoothing = 1e-6, .iterations = 20}, out);
       }}};
  const auto view = [&](std::size_t at, std::size_t size) {
    inputs out;
    for (const auto& one : owned) out.push_back({1, std::span(one).subspan(at, size)});
    return out;
  };
  {
    const auto size = std::min(unit, values);
    std::vector<float> fast(size), slow(size);
    const auto first = view(0, size);
    centered_clip<float>(first, radii, {}, {}, fast);
    const auto steps = plain_clip(first, radius, slow);
    double worst = 0;
    for (std::size_t j = 0; j < size; ++j)
      worst =
          std::max(worst, std::abs(static_cast<double>(fast[j]) - static_cast<double>(slow[j])));
    SHOAL_CHECK(worst <= 1e-6 * radius, "CenteredClip agrees with its plain iteration");
    std::printf("%zu members, %zu values in units of %zu, 7 of 16 far away; plain steps: %zu\n",
                members, values, unit, steps);
  }
  std::vector<float> out(values);
  for (std::size_t round = 0; round < rounds; ++round)
    for (auto& one : sides)
      one.seconds.push_back(seconds([&] {
        for (std::size_t at = 0; at < values; at += unit) {
          const auto size = std::min(unit, values - at);
          one.run(view(at, size), std::span(out).subspan(at, size));
        }
      }));
  const double bytes = 4e-9 * static_cast<double>(members) * static_cast<double>(values);
  for (const auto& one : sides) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < rounds; ++round)
      ratios.push_back(one.seconds[round] / sides.front().seconds[round]);
    std::printf("%-31s %7.3f GB/s, time over the mean's %7.2f (%.2f to %.2f)\n", one.name.c_str(),
                bytes / quantile(one.seconds, 0.5), quantile(ratios, 0.5), quantile(ratios, 0.25),
                quantile(ratios, 0.75));
  }
}
