// The trainer in a run with a data shard: samples, epochs, and the whole model.
#include "actors/averaging/group.hpp"
#include "actors/data/observations.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/dht/host_record.hpp"
#include "actors/experts/expert_trainer.hpp"
#include "actors/observe.hpp"
#include "actors/pipeline/observations.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/interval_map.hpp"

#include <caf/actor_cast.hpp>

#include <utility>

namespace shoal::actors {

expert_trainer::~expert_trainer() = default;

void expert_trainer::begin_run() {
  stream_ = std::make_unique<sample_stream<expert_trainer>>(*this, options_.dht, options_.shard,
                                                            shard_timer, shard_token);
  here().observe(phase_changed{peer_phase::joining, 0, {}});
  refresh();
}

state_id expert_trainer::state_here() const {
  hasher name;
  name.add(std::string_view{"shoal.experts.trunk"}).add(here().id()).add(steps_);
  return state_id::from(name.finish());
}

group_id expert_trainer::step_here() const {
  hasher name;
  name.add(std::string_view{"shoal.experts.step"}).add(here().id()).add(steps_);
  return group_id::from(name.finish());
}

// -- records --------------------------------------------------------------------------------------

void expert_trainer::refresh() {
  set_timer(options_.refresh, refreshing);
  if (draining_) return;
  cache_.drop_old(here().utc_ns(), now());
  publish();
  trainers_token_ = ++last_token_;
  send(options_.dht, lookup{expert_trainers_key(options_.model), address(), trainers_token_});
  if (!stream_->shard.connected()) stream_->shard.look_up(now());
  stream_->shard.request(now());
}

void expert_trainer::publish() {
  const expert_trainer_record mine{own_, learnt_.total(), done_};
  // Servers read the last record when this host may have left.
  const auto lifetime = options_.record_lifetime * (done_ ? 4 : 1);
  send(options_.dht, store{expert_trainers_key(options_.model),
                           host_record(here(), address(), mine.pack(), lifetime)});
}

void expert_trainer::read_trainers(const found& m) {
  if (draining_) return;
  others_.clear();
  for (const auto& each : m.records) {
    const auto record = expert_trainer_record::unpack(each->value);
    if (!record || !each->address) continue;
    const auto peer = here().peer_of(caf::actor_cast<caf::strong_actor_ptr>(each->address));
    if (peer == 0 || peer == here().id()) continue;
    learnt_.read(peer, *record);
    if (record->own > 0) others_.push_back(each->address);
  }
  learnt_.read_all();
  if (joined_) return;
  joined_ = true;
  // Another trunk than the first one fits the experts, once they have learnt.
  if (!others_.empty()) return ask_for_trunk();
  join_run();
}

void expert_trainer::ask_for_trunk() {
  adopts_trunk_ = !others_.empty();
  if (!adopts_trunk_) return join_run();
  const auto& other = others_[(draws_.below(others_.size()) + asked_other_++) % others_.size()];
  asked_for_trunk_ = here().peer_of(caf::actor_cast<caf::strong_actor_ptr>(other));
  send(other, trunk_wanted{address()});
  set_timer(options_.timeout, trunk_timer);
}

void expert_trainer::adopt(const std::vector<float>& trunk) {
  adopts_trunk_ = false;
  trunk_ = std::make_shared<const std::vector<float>>(trunk);
  join_run();
}

void expert_trainer::join_run() {
  epoch_ = learnt_.total() / options_.epoch_of;
  state_ = state_here();
  here().observe(phase_changed{peer_phase::computing, epoch_, state_});
  note_end();
  set_timer(duration{}, begin);
}

// -- samples --------------------------------------------------------------------------------------

void expert_trainer::look_for_shard() {
  if (stream_) stream_->shard.look_up_due(now());
}

void expert_trainer::found_shard(const found& m) {
  if (!draining_) stream_->shard.found(m.records, now());
}

bool expert_trainer::take_samples(std::vector<std::byte>& into) {
  if (!is_in_run() || is_at_end()) return false;
  auto& held = stream_->held;
  waiting_ = held.ready() < options_.batch;
  if (!waiting_) {
    const auto job = held.take(options_.batch, options_.net->ends().sample_bytes(), now());
    ranges_ = job.ranges();
    held.add_computed(ranges_, 0);
    for (const auto& block : job.blocks) {
      const auto part = block.data.bytes();
      into.insert(into.end(), part.begin(), part.end());
    }
    parts_ = parts_done_ = 0;
  }
  stream_->shard.request(now());
  return !waiting_;
}

template <class Samples>
void expert_trainer::receive_samples(const Samples& m) {
  if (!stream_) return sender_misbehaves("samples from a shard that was not asked");
  if (draining_) return; // the leases of these samples end
  const auto came = stream_->shard.take(m, current_sender(), now());
  if (!came) return sender_misbehaves(came.error());
  if (!*came) return;
  learnt_.leased(m.range.end());
  if (waiting_) start_step();
}
template void expert_trainer::receive_samples(const samples& m);
template void expert_trainer::receive_samples(const proven_samples& m);
template void expert_trainer::receive_samples(const proven_copies& m);

void expert_trainer::receive(const lease_lost& m) {
  if (!stream_ || !stream_->shard.is_current(current_sender())) return;
  stream_->shard.lost(m.ranges);
  auto repeated = stream_->held.drop_computed(m.ranges);
  if (repeated.empty()) return;
  // The shard leases these samples again. Their gradients change the experts all the same, but the
  // trainer neither reports nor commits them.
  interval_set lost;
  for (const auto& range : repeated) lost.insert(range.first, range.end());
  for (const auto& range : std::exchange(ranges_, {}))
    for (const auto& piece : lost.missing(range.first, range.end()))
      append_range(ranges_, piece.first, piece.end);
  here().observe(samples_reported{"repeated: in a step of a trainer that lost their lease",
                                  here().id(), epoch_, std::move(repeated)});
}

void expert_trainer::receive(const commit_received& m) {
  if (stream_ && !stream_->shard.on(m, current_sender()))
    sender_misbehaves("commit_received: from a stranger");
}

void expert_trainer::receive(const not_primary& m) {
  if (stream_) stream_->shard.on(m, current_sender(), now());
}

/// Each expert whose gradient was to count is a part, and the trunk is one.
void expert_trainer::commit_step() {
  const auto count = index_count(ranges_);
  if (count > 0) {
    stream_->held.drop_computed(ranges_);
    if (parts_done_ == 0) {
      stream_->shard.give_back(std::exchange(ranges_, {}));
    } else {
      here().observe(trained{epoch_, ranges_, loss_ * static_cast<double>(count)});
      here().observe(batch_stepped{epoch_, step_here(), ranges_, parts_done_, parts_, loss_});
      commit out;
      out.epoch = epoch_;
      out.group = step_here();
      out.parts_total = parts_;
      out.entries.push_back({here().id(), std::exchange(ranges_, {}), parts_done_});
      stream_->shard.hand_in(std::move(out));
      own_ += count;
      learnt_.set_own(own_);
    }
  }
  reach_epoch();
}

// -- epochs ---------------------------------------------------------------------------------------

void expert_trainer::reach_epoch() {
  if (draining_) return go_away();
  auto reached = learnt_.total() / options_.epoch_of;
  if (options_.epochs > 0) reached = std::min(reached, options_.epochs);
  if (reached <= epoch_) return;
  const auto before = std::exchange(epoch_, reached);
  const auto from = std::exchange(state_, state_here());
  if (options_.wants_model)
    if (const auto due = options_.wants_model(before, epoch_)) gather(*due);
  here().observe(stepped{epoch_, from, state_, step_here()});
  note_end();
  publish();
}

void expert_trainer::gather(std::uint64_t epoch) {
  const auto trunk =
      std::make_shared<const expert_state>(expert_state{steps_, *trunk_, optimizer_state_});
  const auto got = std::make_shared<expert_states>();
  expert_gatherer_config config;
  config.model = options_.model;
  config.epoch = epoch;
  config.experts = options_.experts;
  config.before = options_.initial;
  config.parameters = options_.expert_size;
  config.optimizer = options_.optimizer;
  config.record_lifetime = options_.record_lifetime;
  config.most_growth = options_.most_growth;
  config.then = [epoch, got, trunk, keep = options_.on_model,
                 samples = learnt_.total()](expert_states all) {
    keep(epoch, samples, *trunk, all);
    *got = std::move(all);
  };
  config.dht = options_.dht;
  const auto made = spawn<expert_gatherer>(std::ref(here()), std::move(config));
  monitor(made);
  gathers_[caf::actor_cast<caf::actor_addr>(made)] = got;
}

/// At the last epoch the servers wait until each trainer needs them no more.
void expert_trainer::note_end() {
  if (!is_at_end() || !gathers_.empty() || done_) return;
  done_ = true;
  publish();
  here().observe(experts_followed{epoch_, 0, 0});
}

void expert_trainer::run_lost(const caf::actor_addr& whom) {
  stream_->shard.down(whom, now());
  const auto gathered = gathers_.find(whom);
  if (gathered == gathers_.end()) return;
  // The next model has these in place of experts that are missing then.
  if (!gathered->second->empty()) options_.initial = *gathered->second;
  gathers_.erase(gathered);
  note_end();
  if (draining_) go_away();
}

void expert_trainer::leave() {
  if (std::exchange(draining_, true) || !stream_) return;
  if (group_) send(group_, tick{group_actor::cancel, 0});
  stream_->shard.give_back(stream_->held.take_ready());
  // Experts may have made their steps already.
  if (!backward_) {
    calls_.clear();
    searches_.clear();
    then_ = nullptr;
    begun_ = nullptr;
    pass_.reset();
    stream_->held.drop_computed(ranges_);
    if (!ranges_.empty()) stream_->shard.give_back(std::exchange(ranges_, {}));
  }
  go_away();
}

void expert_trainer::go_away() {
  if (backward_ || !gathers_.empty()) return;
  // The record of the last epoch stays, because it tells the servers that the run is over.
  if (!is_at_end())
    send(options_.dht, withdraw{expert_trainers_key(options_.model), host_subkey(here())});
  stream_->shard.stop();
}

} // namespace shoal::actors
