// The lower bound of a transfer pattern. Every flow gets its max-min fair share of the access links
// at once, without headers, delay or start-up. Prints `index end_seconds` for each flow.

#include "tests/accuracy/pattern.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace {

using namespace shoal::accuracy;

/// Max-min fair rates of the flows in `active`, by filling; the tightest link comes first.
std::vector<double> shares(const pattern& p, const std::vector<std::size_t>& active) {
  const std::size_t n = p.hosts.size();
  std::vector<double> left(2 * n), users(2 * n, 0), rate(p.flows.size(), -1);
  for (std::size_t h = 0; h < n; ++h) {
    left[h] = static_cast<double>(p.hosts[h].up_bits_per_second);
    left[n + h] = static_cast<double>(p.hosts[h].down_bits_per_second);
  }
  for (const std::size_t i : active) {
    ++users[p.flows[i].from];
    ++users[n + p.flows[i].to];
  }
  for (std::size_t settled = 0; settled < active.size();) {
    std::size_t tightest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t l = 0; l < 2 * n; ++l)
      if (users[l] > 0 && left[l] / users[l] < least) {
        least = left[l] / users[l];
        tightest = l;
      }
    for (const std::size_t i : active) {
      const std::size_t up = p.flows[i].from, down = n + p.flows[i].to;
      if (rate[i] >= 0 || (up != tightest && down != tightest)) continue;
      rate[i] = least;
      ++settled;
      for (const std::size_t l : {up, down}) {
        left[l] -= least;
        --users[l];
      }
    }
  }
  return rate;
}

std::vector<double> run(const pattern& p) {
  const double never = std::numeric_limits<double>::infinity();
  std::vector<double> bits, end(p.flows.size(), -1);
  for (const flow& f : p.flows) bits.push_back(8.0 * static_cast<double>(f.bytes));
  for (double now = 0;;) {
    std::vector<std::size_t> active;
    double next = never;
    for (std::size_t i = 0; i < p.flows.size(); ++i) {
      const double start = 1e-9 * static_cast<double>(p.flows[i].start_ns);
      if (end[i] < 0 && start <= now)
        active.push_back(i);
      else if (end[i] < 0)
        next = std::min(next, start);
    }
    if (active.empty() && next == never) return end;
    const auto rate = shares(p, active);
    for (const std::size_t i : active) next = std::min(next, now + bits[i] / rate[i]);
    for (const std::size_t i : active) {
      bits[i] -= rate[i] * (next - now);
      if (bits[i] < 1e-3) end[i] = next;
    }
    now = next;
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: ideal PATTERN\n");
    return 2;
  }
  try {
    const auto end = run(read_pattern(argv[1]));
    for (std::size_t i = 0; i < end.size(); ++i) std::printf("%zu %.6f\n", i, end[i]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
