#include "actors/pipeline/rebalancing.hpp"

#include "kernels/base/check.hpp"

#include <cstddef>
#include <tuple>
#include <vector>

namespace shoal::actors {

namespace {

struct total {
  double load = 0;
  std::size_t peers = 0;
};

std::vector<total> totals_of(std::span<const stage_load> peers, std::uint32_t stages) {
  SHOAL_CHECK(stages > 0, "a pipeline has a stage");
  std::vector<total> out(stages);
  for (const auto& one : peers)
    if (one.stage < stages) {
      out[one.stage].load += one.queue;
      ++out[one.stage].peers;
    }
  return out;
}

/// A stage without a peer has more load than any other: its work waits for ever.
bool heavier(const total& a, const total& b) {
  if ((a.peers == 0) != (b.peers == 0)) return a.peers == 0;
  return a.peers > 0 && a.load > b.load;
}

} // namespace

std::optional<stage_move> due_move(std::span<const stage_load> peers, std::uint32_t stages) {
  const auto totals = totals_of(peers, stages);
  std::optional<std::uint32_t> least, most;
  for (std::uint32_t s = 0; s < stages; ++s) {
    if (totals[s].peers > 1 && (!least || totals[s].load < totals[*least].load)) least = s;
    if (!most || heavier(totals[s], totals[*most])) most = s;
  }
  if (!least || !heavier(totals[*most], totals[*least])) return std::nullopt;
  const stage_load* mover = nullptr;
  for (const auto& one : peers)
    if (one.stage == *least &&
        (mover == nullptr || std::tie(one.queue, one.peer) < std::tie(mover->queue, mover->peer)))
      mover = &one;
  return stage_move{mover->peer, *least, *most};
}

bool move_helps(const stage_move& move, std::span<const stage_load> peers, std::uint32_t stages) {
  const auto totals = totals_of(peers, stages);
  const auto &from = totals[move.from], &to = totals[move.to];
  if (from.peers < 2 || to.peers == 0) return from.peers >= 2;
  const auto peers_before = static_cast<double>(from.peers);
  return to.load > from.load * peers_before / (peers_before - 1);
}

std::uint32_t stage_to_join(std::span<const stage_load> peers, std::uint32_t stages) {
  const auto totals = totals_of(peers, stages);
  std::uint32_t out = 0;
  for (std::uint32_t s = 1; s < stages; ++s) {
    const auto &a = totals[s], &b = totals[out];
    if (heavier(a, b) || (!heavier(b, a) && a.peers < b.peers)) out = s;
  }
  return out;
}

} // namespace shoal::actors
