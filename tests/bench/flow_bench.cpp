// The flow model alone, without actors and messages, on the usual workloads of flow-level
// simulators.
// The network is a star of private links, up 12.5 MB/s and down 25 MB/s times U(0.5, 1.5), 20 ms
// each.
//   groups N M R: R rounds; each peer sends M - 1 chunks of 40 MB / M inside its group of M, and
//                 starts its next round when its own sends have ended.
//   random N R:   each peer sends R times 1 MB, one after the other, to random peers.
// Usage: flow_bench (groups N M R | random N R) [SEED]; without arguments a list of workloads.
// Before it times anything it checks the rates against max_min_reference on small workloads.
#include "kernels/base/rng.hpp"
#include "netem/flow_network.hpp"
#include "netem/max_min_reference.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <string>
#include <vector>

namespace {

using namespace shoal;
using namespace shoal::netem;

struct workload {
  bool groups = true;
  std::size_t peers = 0;
  std::size_t group_size = 0;
  std::size_t rounds = 0;
};

struct outcome {
  duration end{};
  std::uint64_t flows = 0;
  std::uint64_t refilled = 0;
  double wall_seconds = 0;
  double cpu_seconds = 0;
  double worst_error = 0;
};

constexpr duration delay = std::chrono::milliseconds(40); // 20 ms for each of the two links

class world {
public:
  world(const workload& what, std::uint64_t seed) : what_(what), seed_(seed), peers_(what.peers) {
    auto rates = stream(seed, "rates");
    for (auto& p : peers_) {
      p.up = net_.add_link(8 * 12.5e6 * rates.uniform(0.5, 1.5));
      p.down = net_.add_link(8 * 25e6 * rates.uniform(0.5, 1.5));
    }
  }

  outcome run(std::size_t verify_every) {
    const auto begin = std::chrono::steady_clock::now();
    const auto cpu_begin = std::clock();
    for (std::uint32_t p = 0; p < peers_.size(); ++p) waiting_.push_back({delay, p});
    std::vector<finished_flow> done;
    outcome result;
    std::size_t steps = 0;
    for (;;) {
      const auto next = net_.next_completion();
      if (verify_every > 0 && steps++ % verify_every == 0)
        result.worst_error = std::max(result.worst_error, error());
      // The delay is the same for all, so sends start in the order in which they were made.
      if (!waiting_.empty() && (!next || waiting_.front().at <= *next)) {
        const auto at = waiting_.front().at;
        net_.advance(at, done);
        for (; !waiting_.empty() && waiting_.front().at == at; waiting_.pop_front())
          send(waiting_.front().peer, at);
      } else if (next) {
        net_.advance(*next, done);
      } else {
        break;
      }
      for (const auto& d : done) {
        auto& p = peers_[d.tag];
        if (--p.pending == 0 && ++p.round < what_.rounds)
          waiting_.push_back({d.at + delay, static_cast<std::uint32_t>(d.tag)});
        result.end = d.at;
      }
      result.flows += done.size();
      done.clear();
    }
    result.refilled = net_.flows_refilled();
    result.wall_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    result.cpu_seconds = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
    return result;
  }

private:
  struct peer {
    link_id up{}, down{};
    std::size_t pending = 0;
    std::size_t round = 0;
  };
  struct send_start {
    duration at;
    std::uint32_t peer;
  };

  void send(std::uint32_t from, duration now) {
    auto& p = peers_[from];
    const auto one = [&](std::size_t to, std::uint64_t bytes) {
      const std::array path{p.up, peers_[to].down};
      net_.start(path, bytes, unlimited, now, from);
      ++p.pending;
    };
    if (!what_.groups) {
      auto draw = stream(seed_, "target", from, p.round);
      const auto to = draw.below(peers_.size() - 1);
      return one(to < from ? to : to + 1, 1'000'000);
    }
    // Members of a group differ in one digit of their index; the last digits may overlap.
    std::size_t stride = 1;
    for (std::size_t r = 0; r < p.round; ++r)
      stride = std::min(stride * what_.group_size, peers_.size() / what_.group_size);
    const auto digit = from / stride % what_.group_size;
    for (std::size_t k = 0; k < what_.group_size; ++k)
      if (k != digit) one(from - digit * stride + k * stride, 40'000'000 / what_.group_size);
  }

  double error() {
    std::vector<double> capacities;
    std::vector<max_min_demand> flows;
    std::vector<double> rates;
    for (const auto& p : peers_) {
      capacities.push_back(net_.capacity(p.up));
      capacities.push_back(net_.capacity(p.down));
    }
    std::vector<std::vector<flow_id>> on_down;
    for (const auto& p : peers_)
      for (const auto f : net_.flows_on(p.down)) {
        flows.push_back({{{peers_[net_.tag(f)].up, 1}, {p.down, 1}}, unlimited, 1});
        rates.push_back(net_.rate(f));
      }
    const auto expected = max_min_reference(capacities, flows);
    double worst = 0;
    for (std::size_t i = 0; i < rates.size(); ++i)
      worst = std::max(worst, std::abs(rates[i] - expected[i]) / expected[i]);
    return worst;
  }

  workload what_;
  std::uint64_t seed_;
  flow_network net_;
  std::vector<peer> peers_;
  std::deque<send_start> waiting_;
};

std::string name(const workload& w) {
  return w.groups ? "groups " + std::to_string(w.peers) + " " + std::to_string(w.group_size) + " " +
                        std::to_string(w.rounds)
                  : "random " + std::to_string(w.peers) + " " + std::to_string(w.rounds);
}

void print(const workload& w, std::uint64_t seed) {
  const auto r = world(w, seed).run(0);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%-20s  %10.6f  %8.4f  %8.4f  %9lu  %11.0f  %9.1f  %7.0f\n", name(w).c_str(),
              to_seconds(r.end), r.wall_seconds, r.cpu_seconds, static_cast<unsigned long>(r.flows),
              static_cast<double>(r.flows) / r.cpu_seconds,
              static_cast<double>(r.refilled) / static_cast<double>(r.flows),
              static_cast<double>(usage.ru_maxrss) / 1024);
  std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
  for (const auto& w : {workload{true, 256, 8, 3}, workload{false, 300, 0, 5}}) {
    const auto r = world(w, 1).run(7);
    std::printf("verified %s: worst relative error of a rate %.1e\n", name(w).c_str(),
                r.worst_error);
    if (!(r.worst_error <= 1e-9)) return 3;
  }
  std::printf("%-20s  %10s  %8s  %8s  %9s  %11s  %9s  %7s\n", "workload", "sim end s", "wall s",
              "cpu s", "flows", "flows/cpu s", "refills/f", "RSS MiB");
  const std::string kind = argc > 1 ? argv[1] : "";
  const auto number = [&](int i) {
    return static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10));
  };
  if (kind == "groups" && argc >= 5) {
    print({true, number(2), number(3), number(4)}, argc > 5 ? number(5) : 1);
  } else if (kind == "random" && argc >= 4) {
    print({false, number(2), 0, number(3)}, argc > 4 ? number(4) : 1);
  } else if (argc == 1) {
    for (const auto& w :
         {workload{true, 1024, 16, 1}, workload{true, 1024, 16, 3}, workload{true, 1024, 32, 2},
          workload{true, 4096, 16, 1}, workload{true, 16384, 16, 1}, workload{false, 1000, 0, 10},
          workload{false, 10000, 0, 10}, workload{false, 30000, 0, 5},
          workload{false, 100000, 0, 3}})
      print(w, 1);
  } else {
    std::fprintf(stderr, "usage: flow_bench [groups N M R | random N R] [SEED]\n");
    return 2;
  }
}
