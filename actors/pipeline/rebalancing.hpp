// Rebalancing of a pipeline: every so often one peer goes from the stage with the least load to the
// stage with the most.
//   load of a stage: the sum of its peers' loads
//   mover: in the stage with the least load, the peer with the least
// A stage with one peer gives none, so the least load is looked for among the other stages. A stage
// without a peer has the most load. Nobody moves unless the largest load is above the least one.
// Ties go to the lower stage and the smaller peer id, so all peers that read the same records name
// the same mover.
// A newcomer joins the stage with the largest load.
// Source: Ryabinin et al., "SWARM Parallelism", arXiv:2301.11913, section 3.2 and algorithm 2.
#pragma once

#include "actors/ids.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shoal::actors {

/// A peer's record, as far as rebalancing reads it.
struct stage_load {
  peer_id peer = 0;
  std::uint32_t stage = 0;
  double queue = 0; ///< the peer's part of its stage's load, in one unit for all peers
};

struct stage_total {
  double load = 0; ///< the sum over the stage's peers
  std::uint64_t peers = 0;
};

struct stage_move {
  peer_id peer = 0; ///< 0: not named
  std::uint32_t from = 0, to = 0;
  bool operator==(const stage_move&) const = default;
};

/// The totals of `stages` stages. Peers of a stage that does not exist are ignored.
std::vector<stage_total> totals_of(std::span<const stage_load> peers, std::uint32_t stages);

/// The move that is due, without its peer; empty if there is none. Requires: a stage.
std::optional<stage_move> due_move(std::span<const stage_total> stages);
/// The peer that leaves `stage`; 0 if the stage has none.
peer_id mover_of(std::span<const stage_load> peers, std::uint32_t stage);
/// Both of them. Requires: stages > 0.
std::optional<stage_move> due_move(std::span<const stage_load> peers, std::uint32_t stages);

/// Whether the stage that gives the peer stays less loaded than the other one was. Its other peers
/// take over the work:
///   load(to) > load(from) peers(from) / (peers(from) - 1)
/// So moves end when the stages are as equal as whole peers allow. This rule is
/// not the paper's. Requires: the stages of the move exist.
bool move_helps(const stage_move& move, std::span<const stage_total> stages);

/// The stage for a newcomer: an empty one if there is any, else that with the largest load. Among
/// stages of equal load it is the one with fewest peers, and then the lowest. Requires: a stage.
std::uint32_t stage_to_join(std::span<const stage_total> stages);

} // namespace shoal::actors
