// The work of the messages benchmarks, the same on every side: `actors` tokens go round among
// `actors` actors, each for `hops` messages. The h-th hop takes a token per_host + h % 97 places
// on. So each actor receives one message in each hop and knows when it is done. A token never stays
// on its host.
//
// The checksum is a sum, so that it does not depend on the order within an instant. Two sides with
// the same checksum have delivered the same tokens to the same actors.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>

namespace shoal::bench {

struct messages_work {
  std::size_t actors = 10'000;
  std::size_t per_host = 10;
  std::uint32_t hops = 100;

  messages_work(int argc, char** argv) {
    if (argc > 1) actors = std::strtoull(argv[1], nullptr, 10);
    if (argc > 2) per_host = std::strtoull(argv[2], nullptr, 10);
    if (argc > 3) hops = static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10));
  }
  std::size_t next(std::size_t actor, std::uint32_t hop) const noexcept {
    return (actor + per_host + hop % 97) % actors;
  }
  std::size_t hosts() const noexcept { return (actors + per_host - 1) / per_host; }
};

struct messages_tally {
  std::uint64_t received = 0;
  std::uint64_t checksum = 0;
  void add(std::size_t actor, std::uint32_t hop) noexcept {
    ++received;
    auto x = (std::uint64_t{actor} << 32 | hop) * 0x9e3779b97f4a7c15u;
    checksum += x ^ (x >> 29);
  }
};

inline double resident_bytes() {
  std::ifstream in("/proc/self/statm");
  long all = 0, resident = 0;
  in >> all >> resident;
  return static_cast<double>(resident) * 4096;
}

/// Processor time of this process: other programs on the machine do not count.
inline double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// One line that tests/bench/run reads.
inline void print(const messages_tally& tally, double seconds, double end_seconds,
                  double bytes_per_actor) {
  std::printf("rate=%.0f received=%llu checksum=%016llx end=%.3f bytes_per_actor=%.0f\n",
              static_cast<double>(tally.received) / seconds,
              static_cast<unsigned long long>(tally.received),
              static_cast<unsigned long long>(tally.checksum), end_seconds, bytes_per_actor);
}

} // namespace shoal::bench
