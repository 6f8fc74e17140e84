// How a peer chooses its stage, and when it moves to another one.
#include "actors/dht/host_record.hpp"
#include "actors/observe.hpp"
#include "actors/pipeline/observations.hpp"
#include "actors/pipeline/stage_peer.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace shoal::actors {

/// The load of a stage is the mean of its peers. Two peers write the summary of a stage, so the one
/// that ends last counts.
void stage_peer::receive_summaries(const found& m) {
  const auto stages = options_.model->stages();
  const bool seemed_ahead = seems_ahead();
  totals_.assign(stages, {});
  epochs_.resize(stages);
  std::vector<stage_votes> votes(stages);
  std::vector<std::int64_t> ends(stages);
  std::uint64_t writers = 0; // the peers that have written the own stage's summary
  for (const auto& each : m.records) {
    const auto summary = stage_summary::unpack(each->value);
    if (!summary || summary->stage >= stages) continue;
    if (summary->stage == stage_) ++writers;
    if (each->address)
      votes[summary->stage].add(
          here().member_of(caf::actor_cast<caf::strong_actor_ptr>(each->address)),
          {summary->epoch, {}, {}});
    if (each->expires_utc_ns <= ends[summary->stage]) continue;
    ends[summary->stage] = each->expires_utc_ns;
    totals_[summary->stage] = {static_cast<double>(summary->busy), summary->peers};
  }
  for (std::uint32_t s = 0; s < stages; ++s) epochs_[s] = votes[s].reached().value_or(epochs_[s]);
  if (mode_ == mode::choosing) return choose_stage();
  if (mode_ == mode::joining) return join();
  if (!state_) return;
  // The stage has gone on without this peer, or a writer of its summary is gone.
  const auto& own = totals_[stage_];
  bool reads = seemed_ahead || epochs_[stage_] > state_->epoch ||
               writers < std::min(summary_writers, own.peers);
  if (std::exchange(rebalances_, false) && !moves_to_ && due_transfer()) may_move_ = reads = true;
  if (reads) read_own_stage();
}

void stage_peer::look_at_loads() {
  rebalances_ = true;
  read_stages();
}

void stage_peer::receive(const stage_move_hint& m) {
  if (m.stage != stage_ || !state_ || moves_to_) return;
  // Each writer sends a hint. A peer that sends one after the other makes no more work.
  if (hinted_ && now() - *hinted_ < options_.rebalance_every / 2) return;
  hinted_ = now();
  look_at_loads();
}

/// Several newcomers read the same records, so they spread over the stages that may be lost soon.
void stage_peer::choose_stage() {
  std::vector<std::uint32_t> weak;
  std::uint64_t peers = 0;
  for (std::uint32_t s = 0; s < totals_.size(); ++s) {
    peers += totals_[s].peers;
    if (totals_[s].peers < 2) weak.push_back(s);
  }
  if (peers == 0) return; // a swarm that begins
  take_stage(weak.empty() ? stage_to_join(totals_) : weak[random_.below(weak.size())]);
}

/// The epoch that at least half of the other stages have reached; none before a look at them.
std::optional<std::uint64_t> stage_peer::epoch_elsewhere() const {
  if (epochs_.empty()) return std::nullopt;
  auto others = epochs_;
  others.erase(others.begin() + stage_);
  return others.empty() ? 0 : reached_by_half(std::move(others));
}

void stage_peer::take_stage(std::uint32_t stage) {
  stage_ = stage;
  mode_ = mode::joining;
  alone_since_ = now();
  read_own_stage();
}

/// The move of a peer of this stage that the summaries ask for.
std::optional<stage_move> stage_peer::due_transfer() const {
  if (totals_.empty()) return std::nullopt;
  const auto due = due_move(totals_);
  return due && due->from == stage_ && move_helps(*due, totals_) ? due : std::nullopt;
}

void stage_peer::consider_move() {
  const auto due = due_transfer();
  if (moves_to_ || !state_ || !due) return;
  std::vector<stage_load> own{{here().id(), stage_, static_cast<double>(busy())}};
  for (const auto& [peer, one] : others_)
    own.push_back({peer, stage_, static_cast<double>(one.record.busy)});
  const auto mover = mover_of(own, stage_);
  if (mover != here().id()) {
    if (const auto who = others_.find(mover); writes_summary() && who != others_.end())
      send(who->second.address, stage_move_hint{stage_});
    return;
  }
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
  send(options_.dht, withdraw{summaries_key(options_.run), host_subkey(here())});
  tell_load();
  here().observe(stage_left{stage_, *to});
  stage_ = *to;
  least_epoch_ = state_->epoch;
  state_ = nullptr;
  failed_donors_.clear();
  mode_ = mode::joining;
  tell(peer_phase::joining);
  others_.clear();
  trainers_.clear();
  alone_since_ = now();
  looked_ = 0;
  busy_ = busy_weight_ = 0;
  refresh();
}

} // namespace shoal::actors
