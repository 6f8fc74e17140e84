// How a peer chooses its stage, and when it moves to another one.
#include "actors/dht/host_record.hpp"
#include "actors/observe.hpp"
#include "actors/pipeline/observations.hpp"
#include "actors/pipeline/stage_peer.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

/// The load of a stage is the mean of its peers, so each peer has a part of it. Empty until each
/// stage has shown a peer.
std::optional<std::vector<stage_load>> stage_peer::loads() const {
  if (loads_.size() < options_.model->stages()) return std::nullopt;
  std::vector<stage_load> out;
  for (const auto& [stage, peers] : loads_) {
    const auto count = static_cast<double>(peers.size());
    for (const auto& [peer, record] : peers)
      out.push_back({peer, stage, static_cast<double>(record.busy) / count});
  }
  return out;
}

void stage_peer::choose_stage() {
  const auto all = loads();
  if (!all) return;
  stage_ = stage_to_join(*all, options_.model->stages());
  mode_ = mode::joining;
  send(options_.dht, lookup{stage_key(options_.run, stage_), address(), 0});
}

void stage_peer::consider_move() {
  if (moves_to_ || !state_) return;
  const auto all = loads();
  if (!all) return;
  const auto stages = options_.model->stages();
  const auto due = due_move(*all, stages);
  if (!due || due->peer != here().id() || due->from != stage_ || !move_helps(*due, *all, stages))
    return;
  moves_to_ = due->to;
  announced_ = now();
  publish();
}

void stage_peer::move_if_due() {
  const auto to = std::exchange(moves_to_, std::nullopt);
  const auto stay = std::count_if(others_.begin(), others_.end(),
                                  [](const auto& one) { return !one.second.record.moves; });
  // The others have had time to read that this peer moves.
  if (stay == 0 || now() - announced_ < 2 * options_.refresh) {
    publish();
    return decide();
  }
  send(options_.dht, withdraw{stage_key(options_.run, stage_), host_subkey(here())});
  here().observe(stage_left{stage_, *to});
  stage_ = *to;
  state_ = nullptr;
  mode_ = mode::joining;
  others_.clear();
  looked_ = 0;
  busy_ = busy_weight_ = 0;
  send(options_.dht, lookup{stage_key(options_.run, stage_), address(), 0});
}

} // namespace shoal::actors
