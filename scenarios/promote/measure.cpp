#include "scenarios/promote/measure.hpp"

#include "kernels/base/rng.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/promote/promoted_scenario.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

namespace shoal::scenarios {

namespace {

using wall_clock = std::chrono::steady_clock;

/// Rounds down to whole mebibytes, the unit of the inventory.
std::uint64_t in_mebibytes(std::uint64_t bytes) {
  return bytes >> 20 << 20;
}

duration since(wall_clock::time_point start) {
  return std::chrono::duration_cast<duration>(wall_clock::now() - start);
}

} // namespace

result<std::uint64_t> values_of(const scenario& what) {
  auto work = prepare_workload(what, false);
  if (!work) return failure{work.error()};
  return (*work)->work()->value_count();
}

result<void> measure_compute(const scenario& what, duration time, inventory_host& into) {
  if (!what.workload.definition().has_numbers)
    return failure{fmt::format(
        "the scenario's workload is '{}', which computes nothing: there is nothing to measure",
        what.workload.name())};
  auto prepared = prepare_workload(what, false);
  if (!prepared) return failure{prepared.error()};
  const auto& work = *(*prepared)->work();
  const auto batch = what.training.micro_batch;
  auto draws = stream(what.seed, "promote.measure");
  std::vector<std::byte> samples(batch * work.sample_bytes());
  for (auto& byte : samples) byte = static_cast<std::byte>('a' + draws.below(26));
  auto state = work.initial();
  std::vector<double> gradient(work.value_count());
  std::vector<double> seconds;
  // The measurement uses one thread, as a node does, and no threads of the libraries.
  std::thread([&] {
    prepare_compute_thread();
    for (int i = 0; i < 2; ++i) work.accumulate(state, samples, batch, gradient); // warm-up
    const auto start = wall_clock::now();
    while (since(start) < time || seconds.size() < 5) {
      const auto begun = wall_clock::now();
      work.accumulate(state, samples, batch, gradient);
      seconds.push_back(to_seconds(since(begun)));
    }
    const auto mean = actors::mean_gradient(gradient, batch * seconds.size());
    state = work.step(state, mean);
    const auto begun = wall_clock::now();
    state = work.step(state, mean);
    into.step_time = since(begun);
  }).join();
  double mean = 0, squares = 0;
  for (const double each : seconds) mean += each / static_cast<double>(seconds.size());
  for (const double each : seconds)
    squares += (each - mean) * (each - mean) / static_cast<double>(seconds.size());
  std::nth_element(seconds.begin(),
                   seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                   seconds.end());
  into.model = fingerprint_of(what);
  // The value keeps as many digits as the measurement is accurate to.
  into.samples_per_second =
      std::stod(fmt::format("{:.4g}", static_cast<double>(batch) / seconds[seconds.size() / 2]));
  into.jitter = std::stod(fmt::format("{:.2g}", std::min(0.99, std::sqrt(squares) / mean)));
  into.step_time = std::chrono::duration_cast<std::chrono::microseconds>(into.step_time);
  into.cores = std::thread::hardware_concurrency();
  into.memory = {in_mebibytes(static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                              static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)))};
  into.needs = {in_mebibytes(peak_rss_bytes()) + (1 << 20)};
  return {};
}

} // namespace shoal::scenarios
