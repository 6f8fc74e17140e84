// The throughput of a closed network of queues. So many jobs go round and round, and wait at
// stations. A station serves one job at a time. Mean value analysis, with times of service that
// vary little, so that a job waits half as long as with exponential times:
//   wait(k, n) = demand(k) (1 + queue(k, n - 1) / 2)
//   X(n) = min(n / (delay + sum of count(k) wait(k, n)), 1 / max demand)
//   queue(k, n) = X(n) wait(k, n)
// Error: within 12 % of simulated pipelines (results/swarm/plan.md). It is exact for one job and,
// in the limit, for many.
// Source: Reiser and Lavenberg, "Mean-Value Analysis of Closed Multichain Queuing Networks",
// J. ACM 27(2), 1980. The half is the ratio of the waits of M/D/1 and M/M/1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::kernels {

/// `count` equal stations. A job takes each of them for `demand` seconds on average, in one round.
struct queue_class {
  double demand = 0;
  double count = 1;
};

/// Jobs in a second. `delay`: seconds of a round in which a job takes no station. Requires: jobs >
/// 0, no negative numbers, a delay or a demand above 0. Complexity: classes times the least of
/// `jobs` and 4,096; more jobs than that count as so many.
double closed_network_rate(std::uint64_t jobs, double delay, std::span<const queue_class> stations);

} // namespace shoal::kernels
