// The DHT at scale: creation, store and get, and what is left when a part of the hosts dies at
// once. Usage: dht_shoal [NODES] [KEYS] [DELAY_MS] [SEED] [KILLED] [TIMED] [PATHS]        default
// 1024 20000 50 1 0.2 200 2
#include "tests/e2e/support/dht_network.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  shoal::e2e::dht_network what;
  what.nodes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1024;
  what.keys = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20'000;
  what.delay = std::chrono::milliseconds(argc > 3 ? std::atoi(argv[3]) : 50);
  if (argc > 4) what.seed = std::strtoull(argv[4], nullptr, 10);
  if (argc > 5) what.killed = std::strtod(argv[5], nullptr);
  if (argc > 6) what.timed = std::strtoull(argv[6], nullptr, 10);
  if (argc > 7) what.paths = std::strtoull(argv[7], nullptr, 10);
  auto f = run_dht_network(what);
  std::printf("nodes=%zu joined=%zu delay_ms=%lld\n", what.nodes, f.ready,
              static_cast<long long>(
                  std::chrono::duration_cast<std::chrono::milliseconds>(what.delay).count()));
  std::printf("create: wall_s=%.2f cpu_s=%.2f virtual_s=%.3f (one starts every 10 ms)\n",
              f.create_wall, f.create_cpu, f.create_virtual);
  std::printf("store: wall_ms=%.3f cpu_ms=%.3f virtual_ms=%.1f\n", 1e3 * f.store_wall,
              1e3 * f.store_cpu, 1e3 * f.store_virtual);
  std::printf("get: wall_ms=%.3f cpu_ms=%.3f virtual_ms=%.1f\n", 1e3 * f.get_wall, 1e3 * f.get_cpu,
              1e3 * f.get_virtual);
  std::printf("again: wall_ms=%.3f cpu_ms=%.3f virtual_ms=%.1f\n", 1e3 * f.poll_wall,
              1e3 * f.poll_cpu, 1e3 * f.poll_virtual);
  std::printf("upkeep: cpu_ms=%.3f for each virtual second\n", 1e3 * f.upkeep_cpu);
  std::printf("hops: mean=%.2f max=%u log2=%.1f asked_mean=%.1f\n", f.hops_mean, f.hops_max,
              std::log2(static_cast<double>(what.nodes)), f.asked_mean);
  std::printf("killed=%zu keys=%zu answered=%zu all_replicas_dead=%zu expected=%.2f wrong=%zu "
              "after_republish=%zu\n",
              f.killed, what.keys, f.answered, f.lost_expected,
              static_cast<double>(what.keys) * std::pow(what.killed, 5), f.answered_wrongly,
              f.answered_later);
  std::printf(
      "messages=%llu misbehaved=%llu bypassed=%llu\n", static_cast<unsigned long long>(f.messages),
      static_cast<unsigned long long>(f.misbehaved), static_cast<unsigned long long>(f.bypassed));
}
