#include "actors/pipeline/rebalancing.hpp"

#include "kernels/base/check.hpp"

#include <tuple>

namespace shoal::actors {

namespace {

/// A stage without a peer has more load than any other: its work waits for ever.
bool heavier(const stage_total& a, const stage_total& b) {
  if ((a.peers == 0) != (b.peers == 0)) return a.peers == 0;
  return a.peers > 0 && a.load > b.load;
}

} // namespace

std::vector<stage_total> totals_of(std::span<const stage_load> peers, std::uint32_t stages) {
  std::vector<stage_total> out(stages);
  for (const auto& one : peers)
    if (one.stage < stages) {
      out[one.stage].load += one.queue;
      ++out[one.stage].peers;
    }
  return out;
}

std::optional<stage_move> due_move(std::span<const stage_total> stages) {
  SHOAL_CHECK(!stages.empty(), "a pipeline has a stage");
  std::optional<std::uint32_t> least, most;
  for (std::uint32_t s = 0; s < stages.size(); ++s) {
    if (stages[s].peers > 1 && (!least || stages[s].load < stages[*least].load)) least = s;
    if (!most || heavier(stages[s], stages[*most])) most = s;
  }
  if (!least || !heavier(stages[*most], stages[*least])) return std::nullopt;
  return stage_move{0, *least, *most};
}

peer_id mover_of(std::span<const stage_load> peers, std::uint32_t stage) {
  const stage_load* out = nullptr;
  for (const auto& one : peers)
    if (one.stage == stage &&
        (out == nullptr || std::tie(one.queue, one.peer) < std::tie(out->queue, out->peer)))
      out = &one;
  return out == nullptr ? 0 : out->peer;
}

std::optional<stage_move> due_move(std::span<const stage_load> peers, std::uint32_t stages) {
  auto out = due_move(totals_of(peers, stages));
  if (out) out->peer = mover_of(peers, out->from);
  return out;
}

bool move_helps(const stage_move& move, std::span<const stage_total> stages) {
  const auto &from = stages[move.from], &to = stages[move.to];
  if (from.peers < 2 || to.peers == 0) return from.peers >= 2;
  const auto peers_before = static_cast<double>(from.peers);
  return to.load > from.load * peers_before / (peers_before - 1);
}

std::uint32_t stage_to_join(std::span<const stage_total> stages) {
  SHOAL_CHECK(!stages.empty(), "a pipeline has a stage");
  std::uint32_t out = 0;
  for (std::uint32_t s = 1; s < stages.size(); ++s) {
    const auto &a = stages[s], &b = stages[out];
    if (heavier(a, b) || (!heavier(b, a) && a.peers < b.peers)) out = s;
  }
  return out;
}

} // namespace shoal::actors
