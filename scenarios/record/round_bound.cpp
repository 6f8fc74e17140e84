#include "scenarios/record/round_bound.hpp"

#include "kernels/averaging_plan.hpp"
#include "scenarios/roles/role.hpp"

#include <algorithm>

namespace shoal::scenarios {

std::optional<duration> bandwidth_bound(const std::vector<host_spec>& hosts,
                                        const std::vector<std::string>& members,
                                        std::uint64_t bytes) {
  std::vector<kernels::averaging_peer> peers;
  double senders = 0;
  for (const auto& name : members) {
    const auto host = std::ranges::find(hosts, name, &host_spec::name);
    if (host == hosts.end()) return std::nullopt;
    const bool trains = host->role == nullptr || host->role->trains;
    peers.push_back({host->up.bits_per_second, host->down.bits_per_second, trains, trains});
    senders += trains ? 1 : 0;
  }
  const auto plan = kernels::fill_lines(peers);
  if (!plan) return std::nullopt;
  // How often each bit of the vector passes a line: to its reducer, and back.
  double passes = 0;
  for (std::size_t i = 0; i < peers.size(); ++i)
    passes += plan->shares[i] * 2 * (senders - (peers[i].contributes ? 1 : 0));
  if (passes <= 0) return std::nullopt;
  return from_seconds(plan->seconds_per_bit * 8 * static_cast<double>(bytes) / passes);
}

} // namespace shoal::scenarios
