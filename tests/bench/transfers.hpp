// The work of the transfers benchmarks, the same on every side. The network is a star of private
// links, up 12.5 MB/s and down 25 MB/s times U(0.5, 1.5), 20 ms each. The rates and the receivers
// come from the generator below alone.
//   groups N M R: R rounds; each peer sends M - 1 chunks of 40 MB / M inside its group of M, the
//                 peers that differ from it in one digit of their index.
//   random N R:   each peer sends R times 1 MB, one after the other, to random peers.
// A peer starts its next round once it knows that all its own sends have arrived. This is one delay
// after the last of them, because the receiver has to say so. The last round has no such answer.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string_view>
#include <vector>

namespace shoal::bench {

/// Knuth's MMIX generator; its high bits only.
class congruential {
public:
  explicit congruential(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {
    next(), next();
  }
  std::uint32_t next() noexcept {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 32);
  }
  double uniform(double from, double to) noexcept {
    return from + (to - from) * (next() * 0x1p-32);
  }
  std::size_t below(std::size_t limit) noexcept { return (std::uint64_t{next()} * limit) >> 32; }

private:
  std::uint64_t state_;
};

struct transfers_work {
  static constexpr double link_delay_seconds = 0.02; // a path has two links
  bool groups = true;
  std::size_t peers = 1024;
  std::size_t group_size = 16;
  std::size_t rounds = 1;

  /// From `groups N M R` or `random N R`. Returns none, and says on standard error what is wrong,
  /// for other arguments.
  static std::optional<transfers_work> parse(int argc, char** argv) {
    auto number = [&](int i) {
      return static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10));
    };
    std::optional<transfers_work> out;
    if (argc > 4 && std::string_view(argv[1]) == "groups")
      out = {true, number(2), number(3), number(4)};
    if (argc > 3 && std::string_view(argv[1]) == "random") out = {false, number(2), 0, number(3)};
    if (out && (out->peers < 2 || out->rounds < 1 ||
                (out->groups && (out->group_size < 2 || out->peers % out->group_size != 0))))
      out.reset();
    if (!out)
      std::fprintf(stderr,
                   "usage: %s (groups N M R | random N R) [same | lv08], with N divisible by M\n",
                   argv[0]);
    else if (auto round = out->first_uneven_round()) {
      std::fprintf(
          stderr,
          "groups %zu %zu %zu: no peers are left for the last group of round %zu; let N be "
          "a power of M, or R smaller\n",
          out->peers, out->group_size, out->rounds, *round + 1);
      out.reset();
    }
    return out;
  }

  std::uint64_t chunk_bytes() const noexcept {
    return groups ? 40'000'000 / group_size : 1'000'000;
  }
  std::size_t sends_per_round() const noexcept { return groups ? group_size - 1 : 1; }
  std::uint64_t flows() const noexcept { return std::uint64_t{peers} * rounds * sends_per_round(); }
  double up_bytes_per_second(std::size_t peer) const {
    return 12.5e6 * congruential(2 * peer).uniform(0.5, 1.5);
  }
  double down_bytes_per_second(std::size_t peer) const {
    return 25e6 * congruential(2 * peer + 1).uniform(0.5, 1.5);
  }

  /// Calls `send(to)` for each chunk of a round.
  template <class Send>
  void each_receiver(std::size_t from, std::size_t round, Send send) const {
    if (!groups) {
      auto to = congruential((round + 1) << 32 | from).below(peers - 1);
      return send(to < from ? to : to + 1);
    }
    const auto stride = stride_of(round);
    auto digit = from / stride % group_size;
    for (std::size_t k = 0; k < group_size; ++k)
      if (k != digit) send(from - digit * stride + k * stride);
  }

private:
  /// How far apart the members of a group are. The last digits may overlap.
  std::size_t stride_of(std::size_t round) const noexcept {
    std::size_t stride = 1;
    for (std::size_t r = 0; r < round && stride < peers / group_size; ++r)
      stride = std::min(stride * group_size, peers / group_size);
    return stride;
  }

  /// The first round whose groups do not all have group_size peers.
  std::optional<std::size_t> first_uneven_round() const noexcept {
    if (!groups) return {};
    for (std::size_t round = 0; round < rounds; ++round) {
      const auto stride = stride_of(round);
      if (peers % (stride * group_size) != 0) return round;
      if (stride == peers / group_size) break; // as in all later rounds
    }
    return {};
  }
};

/// Processor and wall time since construction.
class stopwatch {
public:
  double processor_seconds() const {
    return static_cast<double>(std::clock() - processor_) / CLOCKS_PER_SEC;
  }
  double wall_seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_).count();
  }

private:
  std::clock_t processor_ = std::clock();
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
};

/// One line that tests/bench/run reads. `setup` is the processor time until all peers were there.
inline void print_transfers(double end_seconds, std::uint64_t flows, const stopwatch& watch,
                            double setup) {
  auto processor = watch.processor_seconds(), wall = watch.wall_seconds();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("end=%.9f flows=%llu wall=%.4f cpu=%.4f setup=%.4f rss=%ld\n", end_seconds,
              static_cast<unsigned long long>(flows), wall, processor, setup, usage.ru_maxrss);
  std::fflush(stdout);
}

} // namespace shoal::bench
