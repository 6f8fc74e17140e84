// The event queue alone, by the hold model: a queue of constant size. Each step takes the first
// event and pushes another at a random later time (exponential, mean 1 s). Beside it runs a binary
// heap of bare (time, sequence) pairs, the least cost of an ordered queue without slots, owners and
// cancelling.
// Usage: event_queue_bench [STEPS]
// Source: Vaucher and Duval, "A comparison of simulation event list algorithms", CACM 18(4), 1975.
#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "netem/event_queue.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <queue>
#include <vector>

using namespace shoal;
using namespace shoal::netem;

namespace {

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

event at(duration when, std::uint64_t& happened) {
  event out;
  out.when = when;
  out.action = [&happened] { ++happened; };
  return out;
}

double queue_rate(std::size_t pending, std::size_t steps, const std::vector<duration>& ahead) {
  event_queue queue;
  std::uint64_t happened = 0;
  std::size_t drawn = 0;
  auto next = [&] { return ahead[drawn++ % ahead.size()]; };
  for (std::size_t i = 0; i < pending; ++i) queue.push(at(next(), happened));
  duration now{};
  auto start = processor_seconds();
  for (std::size_t i = 0; i < steps; ++i) {
    auto what = queue.pop();
    SHOAL_CHECK(what.when >= now, "events come in the order of time");
    now = what.when;
    what.action();
    queue.push(at(now + next(), happened));
  }
  auto seconds = processor_seconds() - start;
  SHOAL_CHECK(happened == steps && queue.size() == pending, "nothing is lost");
  return static_cast<double>(steps) / seconds;
}

double heap_rate(std::size_t pending, std::size_t steps, const std::vector<duration>& ahead) {
  using entry = std::pair<duration, std::uint64_t>;
  std::priority_queue<entry, std::vector<entry>, std::greater<>> queue;
  std::size_t drawn = 0;
  auto next = [&] { return ahead[drawn++ % ahead.size()]; };
  for (std::size_t i = 0; i < pending; ++i) queue.emplace(next(), drawn);
  auto start = processor_seconds();
  for (std::size_t i = 0; i < steps; ++i) {
    auto now = queue.top().first;
    queue.pop();
    queue.emplace(now + next(), drawn);
  }
  return static_cast<double>(steps) / (processor_seconds() - start);
}

} // namespace

int main(int argc, char** argv) {
  auto steps = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 5'000'000;
  auto draws = stream(1, "hold");
  std::vector<duration> ahead(1 << 16);
  for (auto& x : ahead) x = from_seconds(-std::log(1 - draws.uniform(0, 1)));
  for (std::size_t pending : {1'000, 100'000, 1'000'000})
    std::printf("pending=%zu rate=%.0f binary_heap=%.0f\n", pending,
                queue_rate(pending, steps, ahead), heap_rate(pending, steps, ahead));
}
