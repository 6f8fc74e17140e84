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

/// Several newcomers read the same records, so they spread over the stages that may be lost soon.
void stage_peer::choose_stage() {
  const auto all = loads();
  if (!all || all->empty()) return; // a swarm that begins
  std::vector<std::uint32_t> weak;
  for (const auto& [stage, peers] : loads_)
    if (peers.size() < 2) weak.push_back(stage);
  take_stage(weak.empty() ? stage_to_join(*all, options_.model->stages())
                          : weak[random_.below(weak.size())]);
}

/// The highest epoch of the other stages; none until each of them has answered.
std::optional<std::uint64_t> stage_peer::epoch_elsewhere() const {
  std::uint64_t out = 0;
  for (std::uint32_t s = 0; s < options_.model->stages(); ++s) {
    if (s == stage_) continue;
    const auto found = epochs_.find(s);
    if (found == epochs_.end()) return std::nullopt;
    out = std::max(out, found->second);
  }
  return out;
}

void stage_peer::take_stage(std::uint32_t stage) {
  stage_ = stage;
  mode_ = mode::joining;
  alone_since_ = now();
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
  tell(peer_phase::joining);
  others_.clear();
  alone_since_ = now();
  looked_ = 0;
  busy_ = busy_weight_ = 0;
  send(options_.dht, lookup{stage_key(options_.run, stage_), address(), 0});
}

} // namespace shoal::actors
