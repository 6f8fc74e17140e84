#include "actors/pipeline/pipeline_trainer.hpp"

#include "actors/dht/host_record.hpp"
#include "actors/observe.hpp"
#include "actors/pipeline/stage_peer.hpp"
#include "kernels/base/check.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace shoal::actors {

using pass_kind = micro_batch::task_kind;

namespace {

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

} // namespace

pipeline_trainer::pipeline_trainer(caf::actor_config& config, host& on,
                                   pipeline_trainer_config options)
    : protocol_actor(config, on), options_(std::move(options)), wiring_(options_.model->stages()) {
  SHOAL_CHECK(options_.trainers > 0 && options_.trainer < options_.trainers &&
                  options_.micro_batch > 0 && options_.in_flight > 0 && options_.time > 0,
              "a trainer knows its part of a batch");
}

void pipeline_trainer::on_exit() {
  options_.dht = nullptr;
  options_.samples = nullptr;
  peers_.clear();
  passes_.clear();
  protocol_actor::on_exit();
}

caf::behavior pipeline_trainer::make_behavior() {
  refresh();
  return {
      [this](const stage_output& m) { receive(m); },
      [this](const stage_counted& m) { receive(m); },
      [this](const stage_refused& m) { receive(m); },
      [this](const found& m) { receive(m); },
      [this](const tick& t) {
        if (t.kind == refresh_timer) return refresh();
        // Silence of a peer that has the task.
        const auto late = flights_.find(t.token);
        if (late == flights_.end()) return;
        const auto what = late->second;
        fail(what, task_failure::silent);
      },
  };
}

// -- records --------------------------------------------------------------------------------------

void pipeline_trainer::refresh() {
  publish();
  for (std::uint32_t s = 0; s < options_.model->stages(); ++s)
    send(options_.dht, lookup{stage_key(options_.run, s), address(), 0});
  set_timer(options_.refresh, refresh_timer);
}

void pipeline_trainer::publish() {
  send(options_.dht, store{trainers_key(options_.run),
                           host_record(here(), address(), trainer_record{closed_}.pack(),
                                       options_.record_lifetime)});
}

void pipeline_trainer::receive(const found& m) {
  for (const auto& each : m.records) {
    const auto record = stage_record::unpack(each->value);
    if (!record || !each->address || record->stage >= options_.model->stages() ||
        m.key != stage_key(options_.run, record->stage))
      continue;
    const auto peer = here().peer_of(caf::actor_cast<caf::strong_actor_ptr>(each->address));
    if (peer == 0) continue;
    auto& one = peers_[peer];
    if (one.address && one.stage != record->stage) wiring_[one.stage].leave(peer);
    one.address = each->address;
    one.stage = record->stage;
    one.epoch = record->epoch;
    if (!std::exchange(one.watched, true)) monitor(one.address);
    if (one.epoch == epoch_ && at_ != progress::none) wiring_[one.stage].join(peer);
  }
  decide();
}

void pipeline_trainer::on_down(const caf::actor_addr& whom) {
  const auto gone = std::find_if(peers_.begin(), peers_.end(), [&](const auto& one) {
    return caf::actor_cast<caf::actor_addr>(one.second.address) == whom;
  });
  if (gone == peers_.end()) return;
  const auto peer = gone->first;
  const auto stage = gone->second.stage;
  wiring_[stage].leave(peer);
  peers_.erase(gone);
  // A step that the stage has made has the peer's gradients.
  if (at_ == progress::none || stepped(stage)) return;
  lose(peer);
}

// -- batches --------------------------------------------------------------------------------------

std::optional<std::uint64_t> pipeline_trainer::common_epoch() const {
  std::vector<std::optional<std::uint64_t>> best(options_.model->stages());
  for (const auto& [peer, one] : peers_)
    best[one.stage] = std::max(best[one.stage].value_or(0), one.epoch);
  std::optional<std::uint64_t> out;
  for (const auto& each : best) {
    if (!each) return std::nullopt;
    out = out ? std::min(*out, *each) : *each;
  }
  return out;
}

bool pipeline_trainer::stepped(std::uint32_t stage) const {
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& one) {
    return one.second.stage == stage && one.second.epoch > epoch_;
  });
}

void pipeline_trainer::decide() {
  const auto epoch = common_epoch();
  if (at_ != progress::none) {
    if (epoch && *epoch > epoch_) {
      drop_batch();
    } else {
      for (std::uint32_t s = 0; s < options_.model->stages() && at_ != progress::none; ++s)
        if (stepped(s)) settle(s);
    }
  }
  if (at_ != progress::none) return pump();
  if (epoch && *epoch >= closed_ && (options_.epochs == 0 || *epoch < options_.epochs))
    begin_batch(*epoch);
}

void pipeline_trainer::begin_batch(std::uint64_t epoch) {
  epoch_ = epoch;
  at_ = progress::open;
  reported_ = false;
  const auto part = [&](std::uint64_t i) {
    return epoch * options_.target_batch + options_.target_batch * i / options_.trainers;
  };
  first_sample_ = next_sample_ = part(options_.trainer);
  end_sample_ = part(options_.trainer + 1);
  repeated_ = 0;
  for (auto& [peer, one] : peers_)
    if (one.epoch == epoch_)
      wiring_[one.stage].join(peer);
    else
      wiring_[one.stage].leave(peer);
  pump();
}

void pipeline_trainer::close_batch() {
  at_ = progress::closed;
  closed_ = epoch_ + 1;
  if (!std::exchange(reported_, true)) report(false);
  publish();
  for (const auto& [peer, one] : peers_) send(one.address, batch_closed{epoch_});
}

void pipeline_trainer::report(bool dropped) {
  batch_trained seen{epoch_, next_sample_ - first_sample_, 0, repeated_, dropped};
  for (const auto& [number, loss] : losses_) seen.loss_sum += loss;
  here().observe(seen);
}

/// The batch is over, or goes on without the rest of this trainer's part.
void pipeline_trainer::drop_batch() {
  if (!std::exchange(reported_, true)) report(true);
  at_ = progress::none;
  passes_.clear();
  losses_.clear();
  flights_.clear();
  if (closed_ > epoch_) return;
  closed_ = epoch_ + 1;
  publish();
}

/// The stage has made its step. So it has all samples of a batch that was closed once.
void pipeline_trainer::settle(std::uint32_t stage) {
  if (!reported_) return drop_batch();
  for (auto& [number, pass] : passes_)
    for (std::uint32_t hop = 0; hop < options_.model->hops(); ++hop)
      if (options_.model->stage_of(hop) == stage) pass.settle(hop);
}

void pipeline_trainer::pump() {
  if (at_ != progress::open) return;
  const auto under_way = [this] {
    return static_cast<std::size_t>(std::count_if(
        passes_.begin(), passes_.end(), [](const auto& one) { return !one.second.done(); }));
  };
  while (next_sample_ < end_sample_ && under_way() < options_.in_flight) {
    const auto count = std::min(options_.micro_batch, end_sample_ - next_sample_);
    const auto number = ++numbers_;
    passes_.emplace(std::piecewise_construct, std::forward_as_tuple(number),
                    std::forward_as_tuple(number, options_.model->hops(),
                                          options_.samples(next_sample_, count), count));
    next_sample_ += count;
  }
  bool all_done = next_sample_ == end_sample_;
  for (auto& [number, pass] : passes_) {
    if (pass.done()) continue;
    all_done = false;
    for (const auto& due : pass.due()) dispatch(pass, due);
  }
  if (all_done) close_batch();
}

bool pipeline_trainer::dispatch(micro_batch& pass, micro_batch::task what) {
  const auto& model = *options_.model;
  const auto stage = model.stage_of(what.hop);
  const bool backward = what.kind == pass_kind::backward;
  std::set<peer_id> banned;
  for (const auto& [peer, one] : peers_)
    if (one.stage == stage && one.banned_until > now()) banned.insert(peer);
  const auto size = static_cast<double>(pass.count()) * (backward ? backward_size : 1);
  const auto chosen = wiring_[stage].choose(size, banned);
  if (!chosen) return false; // until a record shows a peer
  stage_task m;
  m.reply_to = address();
  m.number = pass.number();
  m.hop = what.hop;
  m.backward = backward ? 1 : 0;
  m.epoch = epoch_;
  m.count = pass.count();
  m.time = options_.time;
  m.codec = static_cast<std::uint8_t>(options_.activations);
  if (what.hop == 0 || what.hop == model.stages()) m.samples = pass.samples();
  if (what.hop > 0) m.input = pass.input(what.hop);
  if (backward && what.hop < model.stages()) m.gradient = pass.gradient(what.hop);
  pass.sent(what, *chosen);
  flights_[++flights_made_] = {pass.number(), what, *chosen};
  set_timer(backward ? options_.backward_timeout : options_.forward_timeout, task_timer,
            flights_made_);
  send(peers_.at(*chosen).address, std::move(m));
  return true;
}

// -- answers --------------------------------------------------------------------------------------

micro_batch* pipeline_trainer::find(std::uint64_t number) {
  const auto found = passes_.find(number);
  return found == passes_.end() ? nullptr : &found->second;
}

void pipeline_trainer::receive(const stage_output& m) {
  auto* pass = at_ == progress::open && m.epoch == epoch_ ? find(m.number) : nullptr;
  const micro_batch::task what{m.backward != 0 ? pass_kind::backward : pass_kind::forward, m.hop};
  const auto peer = sender_peer();
  if (pass == nullptr || !pass->answered(what, peer, m.values)) return;
  std::erase_if(flights_, [&](const auto& one) {
    return one.second.number == m.number && one.second.task == what && one.second.peer == peer;
  });
  const auto stage = options_.model->stage_of(m.hop);
  wiring_[stage].measured(peer, static_cast<double>(m.computed_ns) * 1e-9,
                          static_cast<double>(pass->count()) *
                              (m.backward != 0 ? backward_size : 1));
  if (m.backward != 0) {
    if (m.hop == options_.model->stages())
      losses_[m.number] = static_cast<double>(m.loss_nanos) * 1e-9;
    send(peers_.at(peer).address, stage_count{address(), m.number, m.hop, m.epoch});
  }
  pump();
}

void pipeline_trainer::receive(const stage_counted& m) {
  auto* pass = at_ == progress::open && m.epoch == epoch_ ? find(m.number) : nullptr;
  if (pass == nullptr) return;
  if (m.counted == 0)
    return fail({m.number, {pass_kind::backward, m.hop}, sender_peer()},
                task_failure::gradient_gone);
  pass->counted(m.hop, sender_peer());
  pump();
}

void pipeline_trainer::receive(const stage_refused& m) {
  if (at_ != progress::open || m.epoch != epoch_) return;
  fail({m.number,
        {m.backward != 0 ? pass_kind::backward : pass_kind::forward, m.hop},
        sender_peer()},
       failure_of(static_cast<task_refusal>(m.why)));
}

void pipeline_trainer::note_failure(const flight& of, task_failure why) {
  here().observe(stage_task_failed{options_.model->stage_of(of.task.hop), of.task.hop,
                                   of.task.kind == pass_kind::backward, of.number, why});
}

void pipeline_trainer::fail(const flight& of, task_failure why) {
  auto* pass = find(of.number);
  // A peer may name any hop.
  if (pass == nullptr || of.task.hop >= options_.model->hops()) return;
  std::erase_if(flights_, [&](const auto& one) {
    return one.second.number == of.number && one.second.task == of.task &&
           one.second.peer == of.peer;
  });
  const bool answered = why == task_failure::gradient_gone;
  if (!answered) ban(of.peer, why == task_failure::silent ? options_.ban : options_.refresh);
  if ((answered || pass->open(of.task)) && pass->peer_of(of.task) == of.peer) note_failure(of, why);
  pass->failed(of.task, of.peer);
  pump();
}

void pipeline_trainer::ban(peer_id peer, duration time) {
  if (const auto found = peers_.find(peer); found != peers_.end())
    found->second.banned_until = now() + time;
}

void pipeline_trainer::lose(peer_id peer) {
  std::erase_if(flights_, [&](const auto& one) {
    if (one.second.peer != peer) return false;
    note_failure(one.second, task_failure::peer_gone);
    return true;
  });
  std::uint32_t again = 0;
  for (auto& [number, pass] : passes_) again += pass.lost(peer);
  repeated_ += again;
  if (at_ == progress::closed && again > 0) {
    at_ = progress::open;
    closed_ = epoch_;
    here().observe(batch_reopened{epoch_, again});
    publish();
  }
  pump();
}

} // namespace shoal::actors
