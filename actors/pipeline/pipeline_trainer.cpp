#include "actors/pipeline/pipeline_trainer.hpp"

#include "actors/dht/host_record.hpp"
#include "actors/inference/activations.hpp"
#include "actors/observe.hpp"
#include "actors/pipeline/stage_peer.hpp"
#include "actors/pipeline/staged_workload.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace shoal::actors {

using pass_kind = micro_batch::task_kind;

namespace {

constexpr std::uint64_t shard_token = 1;
// A peer that is silent again and again gets no task for up to so many doublings of the time.
constexpr unsigned most_ban_doublings = 4;

task_failure failure_of(task_refusal why) {
  switch (why) {
  case task_refusal::epoch:
    return task_failure::other_epoch;
  case task_refusal::stage:
    return task_failure::other_stage;
  case task_refusal::values:
    return task_failure::bad_values;
  case task_refusal::too_many:
    return task_failure::queue_full;
  default:
    return task_failure::not_ready;
  }
}

/// The name of the step that leads to a state of the whole model.
group_id step_to(const state_id& whole) {
  hasher name;
  name.add(std::string_view{"shoal.pipeline.step"}).add(whole.high).add(whole.low);
  return group_id::from(name.finish());
}

} // namespace

pipeline_trainer::~pipeline_trainer() = default;

pipeline_trainer::pipeline_trainer(caf::actor_config& config, host& on,
                                   pipeline_trainer_config options)
    : protocol_actor(config, on), options_(std::move(options)), stages_(options_.model->stages()),
      wiring_(options_.model->stages()),
      sent_(options_.model, options_.forward_timeout, options_.backward_timeout),
      audit_draws_(on.random_stream("pipeline.audits")),
      donor_draws_(on.random_stream("pipeline.donors")) {
  SHOAL_CHECK(options_.trainers > 0 && options_.trainer < options_.trainers &&
                  options_.micro_batch > 0 && options_.in_flight > 0 && options_.time > 0,
              "a trainer knows its part of a batch");
}

void pipeline_trainer::on_exit() {
  options_.dht = nullptr;
  options_.samples = nullptr;
  options_.shard.find_shard = nullptr;
  options_.wants_states = nullptr;
  options_.on_states = nullptr;
  gathering_.reset();
  stream_.reset();
  stages_.clear();
  passes_.clear();
  audits_.clear();
  protocol_actor::on_exit();
}

caf::behavior pipeline_trainer::make_behavior() {
  if (!options_.samples)
    stream_ = std::make_unique<sample_stream<pipeline_trainer>>(*this, options_.dht, options_.shard,
                                                                shard_timer, shard_token);
  here().observe(phase_changed{peer_phase::joining, 0, {}});
  refresh();
  return {
      [this](const stage_output& m) { receive(m); },
      [this](const stage_counted& m) { receive(m); },
      [this](const stage_refused& m) { receive(m); },
      [this](const found& m) { receive(m); },
      [this](const samples& m) { receive_samples(m); },
      [this](const proven_samples& m) { receive_samples(m); },
      [this](const proven_copies& m) { receive_samples(m); },
      [this](const stage_state& m) { receive(m); },
      [this](const lease_lost& m) { receive(m); },
      [this](const commit_received& m) {
        if (stream_ && !stream_->shard.on(m, current_sender()))
          sender_misbehaves("commit_received: from a stranger");
      },
      [this](const not_primary& m) {
        if (stream_) stream_->shard.on(m, current_sender(), now());
      },
      [this](const tick& t) {
        if (t.kind == refresh_timer) return refresh();
        if (t.kind == drain) return leave();
        if (t.kind == shard_timer) {
          if (stream_) stream_->shard.look_up_due(now());
          return;
        }
        if (t.kind == audit_timer) {
          if (const auto audit = audits_.find(t.token); audit != audits_.end()) ask_auditor(audit);
          return;
        }
        if (const auto late = sent_.silent(t.token, now()))
          fail(late->number, late->task, late->peer, task_failure::silent);
      },
  };
}

// -- records --------------------------------------------------------------------------------------

void pipeline_trainer::refresh() {
  set_timer(options_.refresh, refresh_timer);
  if (draining_) return;
  publish();
  if (stream_) {
    send(options_.dht, lookup{trainers_key(options_.run), address(), 0});
    if (!stream_->shard.connected()) stream_->shard.look_up(now());
    stream_->shard.request(now());
  }
  for (std::uint32_t s = 0; s < options_.model->stages(); ++s)
    send(options_.dht, lookup{stage_key(options_.run, s), address(), 0});
}

void pipeline_trainer::publish() {
  if (draining_) return;
  send(options_.dht,
       store{trainers_key(options_.run),
             host_record(here(), address(), record().pack(), options_.record_lifetime)});
}

/// The stages wait for each trainer. One without a batch lets them go on, and has a part of the
/// next batch.
trainer_record pipeline_trainer::record() {
  const bool names_stages = reopened_.size() <= most_open_stages;
  trainer_record next{!joined_       ? no_batch_yet
                      : names_stages ? closed_
                                     : epoch_,
                      told_samples_, told_.version,
                      names_stages ? reopened_ : std::set<std::uint32_t>{}};
  if (next == told_) return told_;
  ++next.version;
  return told_ = std::move(next);
}

void pipeline_trainer::read_trainers(const found& m) {
  std::set<peer_id> read{here().id()};
  for (const auto& each : m.records)
    if (each->address && trainer_record::unpack(each->value))
      read.insert(here().peer_of(caf::actor_cast<caf::strong_actor_ptr>(each->address)));
  read.erase(0);
  trainers_.assign(read.begin(), read.end());
}

void pipeline_trainer::receive(const found& m) {
  if (draining_) return;
  if (m.token == shard_token) {
    if (stream_) stream_->shard.found(m.records, now());
    return;
  }
  if (m.key == trainers_key(options_.run)) return read_trainers(m);
  for (const auto& each : m.records) {
    const auto record = stage_record::unpack(each->value);
    if (!record || !each->address || record->stage >= options_.model->stages() ||
        m.key != stage_key(options_.run, record->stage))
      continue;
    const auto at = caf::actor_cast<caf::strong_actor_ptr>(each->address);
    const auto peer = here().peer_of(at);
    if (peer == 0 || stages_.is_gone(peer, each->expires_utc_ns)) continue;
    const auto change =
        stages_.learn(peer, here().member_of(at), *record, each->address, each->expires_utc_ns);
    if (change.left) wiring_[*change.left].leave(peer);
    if (change.is_new) monitor(each->address);
    if (record->epoch == epoch_ && at_ != progress::none) wiring_[record->stage].join(peer);
  }
  for (std::uint32_t s = 0; s < options_.model->stages(); ++s)
    if (m.key == stage_key(options_.run, s)) stages_.count(s);
  decide();
}

void pipeline_trainer::on_down(const caf::actor_addr& whom) {
  if (stream_) stream_->shard.down(whom, now());
  const auto peer = stages_.peer_at(whom);
  if (peer == 0) return;
  const auto stage = stages_.find(peer)->stage;
  wiring_[stage].leave(peer);
  stages_.forget(peer);
  for (std::uint32_t s = 0; gathering_ && s < gathering_->donors.size(); ++s)
    if (!gathering_->states[s] && caf::actor_cast<caf::actor_addr>(gathering_->donors[s]) == whom)
      ask_for_state(s);
  // A step that the stage has made has the peer's gradients.
  if (at_ == progress::none || stages_.stepped(stage, epoch_)) return;
  lose(peer, stage);
}

// -- batches --------------------------------------------------------------------------------------

void pipeline_trainer::decide() {
  const auto reached = stages_.epochs();
  // The epoch that all stages have reached. None if a stage has no peer: an empty optional is the
  // least one.
  const auto epoch = *std::min_element(reached.begin(), reached.end());
  if (at_ != progress::none) {
    if (epoch && *epoch > epoch_) {
      end_batch();
    } else {
      for (std::uint32_t s = 0; s < reached.size() && at_ != progress::none; ++s)
        if (reached[s] > epoch_) settle(s);
    }
  }
  if (at_ != progress::none) return pump();
  // A newcomer waits until all stages are at one step, and has a part of the next batch.
  if (!epoch || (!joined_ && stages_.whole_at(*epoch).is_zero())) return;
  if (*epoch >= closed_ && (options_.epochs == 0 || *epoch < options_.epochs)) begin_batch(*epoch);
}

void pipeline_trainer::begin_batch(std::uint64_t epoch) {
  const bool first = !std::exchange(joined_, true);
  if (first || epoch != model_epoch_) {
    if (!first) here().observe(adopted{epoch, stages_.whole_at(epoch), 0});
    here().observe(phase_changed{peer_phase::computing, epoch, stages_.whole_at(epoch)});
    model_epoch_ = epoch;
  }
  if (first) publish();
  epoch_ = epoch;
  at_ = progress::open;
  reported_ = false;
  // All trainers with a record share the batch.
  const std::uint64_t mine =
      options_.samples ? options_.trainer
                       : static_cast<std::uint64_t>(
                             std::count_if(trainers_.begin(), trainers_.end(),
                                           [this](peer_id other) { return other < here().id(); }));
  const std::uint64_t all =
      options_.samples ? options_.trainers : std::max<std::uint64_t>(mine + 1, trainers_.size());
  const auto part = [&](std::uint64_t i) {
    return epoch * options_.target_batch + options_.target_batch * i / all;
  };
  part_ = batch_part(part(mine), part(mine + 1));
  repeated_ = 0;
  for (const auto& [peer, one] : stages_.peers())
    if (one.epoch == epoch_)
      wiring_[one.stage].join(peer);
    else
      wiring_[one.stage].leave(peer);
  pump();
}

void pipeline_trainer::close_batch() {
  at_ = progress::closed;
  const auto again = std::exchange(reopened_, {});
  closed_ = epoch_ + 1;
  told_samples_ = part_.size();
  if (!std::exchange(reported_, true)) report(false);
  publish();
  tell_stages(again);
}

void pipeline_trainer::tell_stages(const std::set<std::uint32_t>& stages) {
  const auto mine = record();
  for (const auto& [peer, one] : stages_.peers())
    if (stages.empty() || stages.contains(one.stage))
      send(one.address, trainer_progress{mine.closed_for(one.stage), mine.samples, mine.version});
}

void pipeline_trainer::report(bool dropped) {
  here().observe(batch_trained{epoch_, part_.taken(), part_.loss_sum(), repeated_, dropped});
  if (const auto slowest = sent_.take_slowest()) here().observe(*slowest);
}

/// The batch is over, or goes on without the rest of this trainer's part.
void pipeline_trainer::end_batch() {
  if (!std::exchange(reported_, true)) report(true);
  at_ = progress::none;
  state_id after;
  note_step(after);
  hand_in(step_to(after));
  while (!audits_.empty()) end_audit(audits_.begin(), audit_end::unfinished);
  passes_.clear();
  open_.clear();
  sent_.clear();
  for (auto& [peer, count] : silences_) --count;
  std::erase_if(silences_, [](const auto& one) { return one.second == 0; });
  const bool was_open = !std::exchange(reopened_, {}).empty();
  if (closed_ > epoch_) {
    if (was_open) publish();
    return;
  }
  closed_ = epoch_ + 1;
  told_samples_ = part_.taken();
  publish();
}

/// The whole model is at the next step, if the records show all of both states. Otherwise `after`
/// is an id that names this trainer's batch alone.
void pipeline_trainer::note_step(state_id& after) {
  const auto before = stages_.whole_at(epoch_);
  after = stages_.whole_at(epoch_ + 1);
  gather(epoch_ + 1);
  if (!before.is_zero() && !after.is_zero()) {
    model_epoch_ = epoch_ + 1;
    return here().observe(actors::stepped{epoch_ + 1, before, after, step_to(after)});
  }
  hasher name;
  name.add(std::string_view{"shoal.pipeline.batch"}).add(here().id()).add(epoch_);
  after = state_id::from(name.finish());
}

/// The stages wait for this trainer's part of the next batch, so they all stay at this epoch.
void pipeline_trainer::gather(std::uint64_t epoch) {
  if (!options_.wants_states || !options_.wants_states(epoch)) return;
  gathering_.emplace();
  gathering_->epoch = epoch;
  gathering_->states.resize(options_.model->stages());
  gathering_->donors.resize(options_.model->stages());
  gathering_->content.resize(options_.model->stages());
  // A stage without a donor ends the gathering.
  for (std::uint32_t s = 0; gathering_ && s < options_.model->stages(); ++s) ask_for_state(s);
}

void pipeline_trainer::ask_for_state(std::uint32_t stage) {
  auto donors = stages_.donors(stage, gathering_->epoch);
  std::erase_if(donors, [this](peer_id one) { return gathering_->without.contains(one); });
  if (donors.empty()) return gathering_.reset();
  // A donor that does not answer is not asked again and again.
  const auto* donor = stages_.find(donors[donor_draws_.below(donors.size())]);
  gathering_->donors[stage] = donor->address;
  gathering_->content[stage] = donor->content;
  send(donor->address, stage_state_request{address(), stage});
}

void pipeline_trainer::receive(const stage_state& m) {
  if (!gathering_ || m.stage >= gathering_->donors.size() ||
      !sent_by(gathering_->donors[m.stage]) || gathering_->states[m.stage])
    return;
  auto made = state_of(m, *options_.initial[m.stage]);
  if (!made || made->epoch != gathering_->epoch ||
      stage_content(*made) != gathering_->content[m.stage]) {
    // The donor has gone on, or lies.
    if (made && made->epoch == gathering_->epoch)
      sender_misbehaves("a state other than the one that its record names");
    gathering_->without.insert(sender_peer());
    return ask_for_state(m.stage);
  }
  gathering_->states[m.stage] = std::move(made);
  if (std::any_of(gathering_->states.begin(), gathering_->states.end(),
                  [](const auto& one) { return !one; }))
    return;
  options_.on_states(std::exchange(gathering_, std::nullopt)->states);
}

void pipeline_trainer::leave() {
  if (std::exchange(draining_, true)) return;
  if (at_ != progress::none) end_batch();
  send(options_.dht, withdraw{trainers_key(options_.run), host_subkey(here())});
  if (!stream_) return;
  stream_->shard.give_back(stream_->held.take_ready());
  stream_->shard.stop();
}

/// The stage has made its step. So it has all samples of a batch that was closed once.
void pipeline_trainer::settle(std::uint32_t stage) {
  if (!reported_) return end_batch();
  for (auto& [number, pass] : passes_)
    for (std::uint32_t hop = 0; hop < options_.model->hops(); ++hop)
      if (options_.model->stage_of(hop) == stage) pass.settle(hop);
}

/// Sends all tasks that are due.
void pipeline_trainer::pump() {
  if (at_ != progress::open) return;
  waits_ = false;
  start_more();
  for (auto next = open_.begin(); next != open_.end();) go_on(passes_.find(*next++));
  close_if_done();
}

void pipeline_trainer::start_more() {
  while (part_.left() > 0 && open_.size() < options_.in_flight) {
    const auto count = std::min(options_.micro_batch, part_.left());
    auto next = take(count);
    if (!next) break; // until the shard has sent them
    const auto number = ++numbers_;
    const auto pass = passes_
                          .emplace(std::piecewise_construct, std::forward_as_tuple(number),
                                   std::forward_as_tuple(number, options_.model->hops(),
                                                         std::move(next->bytes), count))
                          .first;
    part_.add(number, count, std::move(next->ranges));
    open_.insert(number);
    go_on(pass);
  }
}

void pipeline_trainer::go_on(std::map<std::uint64_t, micro_batch>::iterator pass) {
  if (pass->second.done()) {
    open_.erase(pass->first);
    return;
  }
  for (const auto& due : pass->second.due()) dispatch(pass->second, due);
}

void pipeline_trainer::close_if_done() {
  if (at_ == progress::open && part_.left() == 0 && open_.empty()) close_batch();
}

/// The peers that get no task now.
std::set<peer_id> pipeline_trainer::banned() {
  std::erase_if(bans_, [this](const auto& one) { return one.second <= now(); });
  std::set<peer_id> out;
  for (const auto& [peer, until] : bans_) out.insert(peer);
  return out;
}

stage_task pipeline_trainer::task_of(const micro_batch& pass, micro_batch::task what) {
  const auto& model = *options_.model;
  const bool backward = what.kind == pass_kind::backward;
  stage_task m;
  m.reply_to = address();
  m.number = pass.number();
  m.hop = what.hop;
  m.backward = backward ? 1 : 0;
  m.epoch = epoch_;
  m.count = pass.count();
  m.time = options_.time;
  m.codec = static_cast<std::uint8_t>(options_.activations);
  if (what.hop == 0 || what.hop == model.last_hop()) m.samples = pass.samples();
  if (what.hop > 0) m.input = pass.input(what.hop);
  if (backward && what.hop < model.last_hop()) m.gradient = pass.gradient(what.hop);
  return m;
}

void pipeline_trainer::dispatch(micro_batch& pass, micro_batch::task what) {
  const auto& model = *options_.model;
  const auto stage = model.stage_of(what.hop);
  const bool backward = what.kind == pass_kind::backward;
  const auto size = static_cast<double>(pass.count()) * (backward ? backward_size : 1);
  const auto chosen = wiring_[stage].choose(size, banned());
  if (!chosen) {
    waits_ = true; // until a record shows a peer, or a ban ends
    return;
  }
  auto m = task_of(pass, what);
  pass.sent(what, *chosen);
  const auto timer = sent_.send(pass.number(), what, *chosen, now());
  set_timer(timer.wait, task_timer, timer.token);
  send(stages_.find(*chosen)->address, std::move(m));
}

// -- answers --------------------------------------------------------------------------------------

/// A task of `pass` has ended.
void pipeline_trainer::task_ended(std::map<std::uint64_t, micro_batch>::iterator pass) {
  if (waits_) return pump();
  go_on(pass);
  start_more();
  close_if_done();
}

bool pipeline_trainer::has_activations(const micro_batch& pass, micro_batch::task what,
                                       const payload& values) const {
  const auto& model = *options_.model;
  if (what.kind == pass_kind::backward && what.hop == 0) return true; // nothing goes on from there
  const auto rows = pass.count() * options_.time;
  return bool(
      unpack_activations(options_.activations, values, rows, model.width(), model.sized_values()));
}

void pipeline_trainer::receive(const stage_output& m) {
  if (audits_.contains(m.number)) return audit_answered(m);
  const auto found =
      at_ == progress::open && m.epoch == epoch_ ? passes_.find(m.number) : passes_.end();
  const micro_batch::task what{m.backward != 0 ? pass_kind::backward : pass_kind::forward, m.hop};
  const auto peer = sender_peer();
  if (found == passes_.end() || !found->second.awaits(what, peer)) return;
  // Each peer of the next stage would refuse such values, and look like the one that fails.
  if (!has_activations(found->second, what, m.values)) {
    misbehaviour(peer, "an output without the activations of its task");
    leave_alone(peer);
    return fail(m.number, what, peer, task_failure::bad_values);
  }
  found->second.answered(what, peer, m.values);
  const auto stage = options_.model->stage_of(m.hop);
  sent_.answered(m.number, what, peer, duration{static_cast<std::int64_t>(m.computed_ns)}, now());
  wiring_[stage].measured(peer, static_cast<double>(m.computed_ns) * 1e-9,
                          static_cast<double>(found->second.count()) *
                              (m.backward != 0 ? backward_size : 1));
  if (m.backward != 0) {
    if (m.hop == options_.model->last_hop())
      part_.set_loss(m.number, static_cast<double>(m.loss_nanos) * 1e-9);
    send(stages_.find(peer)->address, stage_count{address(), m.number, m.hop, m.epoch});
  }
  draw_audit(found->second, what, peer, m);
  task_ended(found);
}

void pipeline_trainer::receive(const stage_counted& m) {
  const auto found =
      at_ == progress::open && m.epoch == epoch_ ? passes_.find(m.number) : passes_.end();
  if (found == passes_.end()) return;
  if (m.counted == 0)
    return fail(m.number, {pass_kind::backward, m.hop}, sender_peer(), task_failure::gradient_gone);
  found->second.counted(m.hop, sender_peer());
  if (found->second.done()) {
    trained(found->second);
    sent_.done(found->second, epoch_, now());
  }
  task_ended(found);
}

void pipeline_trainer::receive(const stage_refused& m) {
  if (const auto audit = audits_.find(m.number); audit != audits_.end()) {
    if (sender_peer() == audit->second.asked) ask_auditor(audit);
    return;
  }
  if (at_ != progress::open || m.epoch != epoch_) return;
  fail(m.number, {m.backward != 0 ? pass_kind::backward : pass_kind::forward, m.hop}, sender_peer(),
       failure_of(static_cast<task_refusal>(m.why)));
}

void pipeline_trainer::note_failure(std::uint64_t number, micro_batch::task what,
                                    task_failure why) {
  here().observe(stage_task_failed{options_.model->stage_of(what.hop), what.hop,
                                   what.kind == pass_kind::backward, number, why});
}

void pipeline_trainer::fail(std::uint64_t number, micro_batch::task what, peer_id by,
                            task_failure why) {
  const auto found = passes_.find(number);
  // A peer may name any hop.
  if (found == passes_.end() || what.hop >= options_.model->hops()) return;
  auto& pass = found->second;
  sent_.drop(number, what, by);
  const bool answered = why == task_failure::gradient_gone;
  if (why == task_failure::silent)
    leave_alone(by);
  else if (!answered)
    ban(by, options_.refresh);
  if (answered ? pass.peer_of(what) == by : pass.awaits(what, by)) note_failure(number, what, why);
  pass.failed(what, by);
  pump();
}

void pipeline_trainer::leave_alone(peer_id peer) {
  ban(peer, options_.ban * (1U << std::min(silences_[peer]++, most_ban_doublings)));
}

void pipeline_trainer::ban(peer_id peer, duration time) {
  if (stages_.find(peer) == nullptr) return;
  auto& until = bans_[peer];
  until = std::max(until, now() + time); // an audit bans for ever
}

void pipeline_trainer::lose(peer_id peer, std::uint32_t stage) {
  for (const auto& each : sent_.drop_all_of(peer))
    note_failure(each.number, each.task, task_failure::peer_gone);
  std::uint32_t again = 0;
  for (auto& [number, pass] : passes_) {
    again += pass.lost(peer);
    if (!pass.done()) open_.insert(number);
  }
  repeated_ += again;
  for (auto audit = audits_.begin(); audit != audits_.end();) {
    const auto next = std::next(audit);
    if (audit->second.asked == peer) ask_auditor(audit);
    audit = next;
  }
  // The other stages have all of the batch, and go on.
  if (closed_ > epoch_ && again > 0) {
    at_ = progress::open;
    here().observe(batch_reopened{epoch_, again});
    if (reopened_.insert(stage).second) {
      publish();
      tell_stages({stage});
    }
  }
  pump();
}

} // namespace shoal::actors
