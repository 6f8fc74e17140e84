#include "actors/pipeline/pipeline_trainer.hpp"

#include "actors/data/observations.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/dht/host_record.hpp"
#include "actors/inference/activations.hpp"
#include "actors/inference/output_check.hpp"
#include "actors/observe.hpp"
#include "actors/pipeline/stage_peer.hpp"
#include "actors/pipeline/staged_workload.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/interval_map.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace shoal::actors {

using pass_kind = micro_batch::task_kind;

namespace {

constexpr std::uint64_t shard_token = 1;
// The states of this epoch and the next one are of use.
constexpr std::size_t kept_ids = 4;

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

payload bytes_of(const sample_job& job) {
  if (job.blocks.size() == 1) return job.blocks.front().data;
  std::uint64_t bytes = 0;
  for (const auto& block : job.blocks) bytes += block.data.size();
  if (job.blocks.front().data.is_size_only()) return payload::size_only(bytes);
  std::vector<std::byte> out;
  out.reserve(bytes);
  for (const auto& block : job.blocks) {
    const auto part = block.data.bytes();
    out.insert(out.end(), part.begin(), part.end());
  }
  return payload{std::move(out)};
}

} // namespace

pipeline_trainer::~pipeline_trainer() = default;

pipeline_trainer::pipeline_trainer(caf::actor_config& config, host& on,
                                   pipeline_trainer_config options)
    : protocol_actor(config, on), options_(std::move(options)), wiring_(options_.model->stages()),
      took_(options_.model->stages()), audit_draws_(on.random_stream("pipeline.audits")) {
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
  peers_.clear();
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
      [this](const samples& m) { receive(m); },
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
        // Silence of a peer that has the task.
        // A later try of the task has a later end.
        const auto late = flights_.find(t.token);
        if (late == flights_.end() || late->second.until > now()) return;
        took(late->second);
        fail(late->second, task_failure::silent);
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
                      part_, told_.version, names_stages ? reopened_ : std::set<std::uint32_t>{}};
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
    const auto peer = here().peer_of(caf::actor_cast<caf::strong_actor_ptr>(each->address));
    if (peer == 0) continue;
    auto& one = peers_[peer];
    if (one.address && one.stage != record->stage) wiring_[one.stage].leave(peer);
    one.address = each->address;
    one.stage = record->stage;
    one.epoch = record->epoch;
    one.state = record->state;
    auto& ids = ids_[record->epoch];
    ids.resize(options_.model->stages());
    // If a stage has split, its first record counts.
    if (ids[record->stage].is_zero()) ids[record->stage] = record->state;
    if (ids_.size() > kept_ids) ids_.erase(ids_.begin());
    if (!std::exchange(one.watched, true)) monitor(one.address);
    if (one.epoch == epoch_ && at_ != progress::none) wiring_[one.stage].join(peer);
  }
  decide();
}

void pipeline_trainer::on_down(const caf::actor_addr& whom) {
  if (stream_) stream_->shard.down(whom, now());
  const auto gone = std::find_if(peers_.begin(), peers_.end(), [&](const auto& one) {
    return caf::actor_cast<caf::actor_addr>(one.second.address) == whom;
  });
  if (gone == peers_.end()) return;
  const auto peer = gone->first;
  const auto stage = gone->second.stage;
  wiring_[stage].leave(peer);
  peers_.erase(gone);
  for (std::uint32_t s = 0; gathering_ && s < gathering_->donors.size(); ++s)
    if (!gathering_->states[s] && caf::actor_cast<caf::actor_addr>(gathering_->donors[s]) == whom)
      ask_for_state(s);
  // A step that the stage has made has the peer's gradients.
  if (at_ == progress::none || stepped(stage)) return;
  lose(peer, stage);
}

// -- batches --------------------------------------------------------------------------------------

std::vector<std::optional<std::uint64_t>> pipeline_trainer::highest_epochs() const {
  std::vector<std::optional<std::uint64_t>> out(options_.model->stages());
  for (const auto& [peer, one] : peers_)
    out[one.stage] = std::max(out[one.stage].value_or(0), one.epoch);
  return out;
}

bool pipeline_trainer::stepped(std::uint32_t stage) const {
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& one) {
    return one.second.stage == stage && one.second.epoch > epoch_;
  });
}

state_id pipeline_trainer::whole_at(std::uint64_t epoch) const {
  const auto found = ids_.find(epoch);
  if (found == ids_.end() || std::any_of(found->second.begin(), found->second.end(),
                                         [](const auto& one) { return one.is_zero(); }))
    return {};
  return whole_state_id(found->second);
}

void pipeline_trainer::decide() {
  const auto highest = highest_epochs();
  // The epoch that all stages have reached. None if a stage has no peer: an empty optional is the
  // least one.
  const auto epoch = *std::min_element(highest.begin(), highest.end());
  if (at_ != progress::none) {
    if (epoch && *epoch > epoch_) {
      end_batch();
    } else {
      for (std::uint32_t s = 0; s < highest.size() && at_ != progress::none; ++s)
        if (highest[s] > epoch_) settle(s);
    }
  }
  if (at_ != progress::none) return pump();
  // A newcomer waits until all stages are at one step, and has a part of the next batch.
  if (!epoch || (!joined_ && whole_at(*epoch).is_zero())) return;
  if (*epoch >= closed_ && (options_.epochs == 0 || *epoch < options_.epochs)) begin_batch(*epoch);
}

void pipeline_trainer::begin_batch(std::uint64_t epoch) {
  const bool first = !std::exchange(joined_, true);
  if (first || epoch != model_epoch_) {
    if (!first) here().observe(adopted{epoch, whole_at(epoch), 0});
    here().observe(phase_changed{peer_phase::computing, epoch, whole_at(epoch)});
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
  first_sample_ = next_sample_ = part(mine);
  end_sample_ = part(mine + 1);
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
  const auto again = std::exchange(reopened_, {});
  closed_ = epoch_ + 1;
  part_ = end_sample_ - first_sample_;
  if (!std::exchange(reported_, true)) report(false);
  publish();
  tell_stages(again);
}

void pipeline_trainer::tell_stages(const std::set<std::uint32_t>& stages) {
  const auto mine = record();
  for (const auto& [peer, one] : peers_)
    if (stages.empty() || stages.contains(one.stage))
      send(one.address, trainer_progress{mine.closed_for(one.stage), mine.samples, mine.version});
}

void pipeline_trainer::report(bool dropped) {
  batch_trained seen{epoch_, next_sample_ - first_sample_, 0, repeated_, dropped};
  for (const auto& [number, loss] : losses_) seen.loss_sum += loss;
  here().observe(seen);
  if (!slowest_.tasks.empty()) here().observe(std::exchange(slowest_, {}));
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
  courses_.clear();
  slowest_ = {};
  open_.clear();
  losses_.clear();
  flights_.clear();
  ranges_.clear();
  trained_.clear();
  const bool was_open = !std::exchange(reopened_, {}).empty();
  if (closed_ > epoch_) {
    if (was_open) publish();
    return;
  }
  closed_ = epoch_ + 1;
  part_ = next_sample_ - first_sample_;
  publish();
}

/// The whole model is at the next step, if the records show all of both states. Otherwise `after`
/// is an id that names this trainer's batch alone.
void pipeline_trainer::note_step(state_id& after) {
  const auto before = whole_at(epoch_);
  after = whole_at(epoch_ + 1);
  gather(epoch_ + 1);
  if (!before.is_zero() && !after.is_zero()) {
    model_epoch_ = epoch_ + 1;
    return here().observe(actors::stepped{epoch_ + 1, before, after, step_to(after)});
  }
  hasher name;
  name.add(std::string_view{"shoal.pipeline.batch"}).add(here().id()).add(epoch_);
  after = state_id::from(name.finish());
}

/// Commits the samples of the batch. The shard leases those again that have counted nowhere.
void pipeline_trainer::hand_in(const group_id& step) {
  if (!stream_) return;
  commit out;
  out.epoch = epoch_;
  out.group = step;
  out.parts_total = options_.model->hops();
  struct part {
    std::vector<sample_range> samples;
    std::uint64_t count = 0;
    double loss_sum = 0;
  };
  std::map<std::uint32_t, part> by_hops;
  for (const auto& [number, pass] : passes_) {
    auto& into = by_hops[pass.counted_hops()];
    for (const auto& range : ranges_.at(number)) append_range(into.samples, range);
    into.count += pass.count();
    into.loss_sum += losses_[number];
  }
  for (auto& [hops, of] : by_hops) {
    if (of.samples.empty()) continue; // the leases of all are lost
    stream_->held.drop_computed(of.samples);
    if (hops == 0) {
      stream_->shard.give_back(std::move(of.samples));
      continue;
    }
    here().observe(batch_stepped{epoch_, step, of.samples, hops, out.parts_total,
                                 of.loss_sum / static_cast<double>(of.count)});
    out.entries.push_back({here().id(), std::move(of.samples), hops});
  }
  if (out.entries.empty()) return;
  stream_->shard.hand_in(std::move(out));
}

/// The stages wait for this trainer's part of the next batch, so they all stay at this epoch.
void pipeline_trainer::gather(std::uint64_t epoch) {
  if (!options_.wants_states || !options_.wants_states(epoch)) return;
  gathering_.emplace();
  gathering_->epoch = epoch;
  gathering_->states.resize(options_.model->stages());
  gathering_->donors.resize(options_.model->stages());
  for (std::uint32_t s = 0; s < options_.model->stages(); ++s) ask_for_state(s);
}

void pipeline_trainer::ask_for_state(std::uint32_t stage) {
  const auto donor = std::find_if(peers_.begin(), peers_.end(), [&](const auto& one) {
    return one.second.stage == stage && one.second.epoch == gathering_->epoch;
  });
  if (donor == peers_.end()) return gathering_.reset();
  gathering_->donors[stage] = donor->second.address;
  send(donor->second.address, stage_state_request{address(), stage});
}

void pipeline_trainer::receive(const stage_state& m) {
  if (!gathering_ || m.stage >= gathering_->donors.size() ||
      !sent_by(gathering_->donors[m.stage]) || gathering_->states[m.stage])
    return;
  auto made = state_of(m, *options_.initial[m.stage]);
  // The stage has gone on, or the donor lies. The next epoch has another chance.
  if (!made || made->epoch != gathering_->epoch) return gathering_.reset();
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
  while (next_sample_ < end_sample_ && open_.size() < options_.in_flight) {
    const auto count = std::min(options_.micro_batch, end_sample_ - next_sample_);
    auto next = take(count);
    if (!next) break; // until the shard has sent them
    const auto number = ++numbers_;
    const auto pass = passes_
                          .emplace(std::piecewise_construct, std::forward_as_tuple(number),
                                   std::forward_as_tuple(number, options_.model->hops(),
                                                         std::move(next->bytes), count))
                          .first;
    ranges_[number] = std::move(next->ranges);
    open_.insert(number);
    next_sample_ += count;
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
  if (at_ == progress::open && next_sample_ == end_sample_ && open_.empty()) close_batch();
}

std::optional<pipeline_trainer::taken> pipeline_trainer::take(std::uint64_t count) {
  if (!stream_) return taken{options_.samples(next_sample_, count), {}};
  auto& held = stream_->held;
  std::optional<taken> out;
  if (held.ready() >= count) {
    const auto job = held.take(count, options_.sample_bytes, now());
    out.emplace();
    out->bytes = bytes_of(job);
    out->ranges = job.ranges();
    held.add_computed(out->ranges, 0);
  }
  stream_->shard.request(now());
  return out;
}

/// The gradient of a micro-batch has counted in every stage for the first time.
void pipeline_trainer::trained(const micro_batch& pass) {
  if (!stream_ || !trained_.insert(pass.number()).second) return;
  const auto& ranges = ranges_.at(pass.number());
  if (!ranges.empty()) here().observe(actors::trained{epoch_, ranges, losses_[pass.number()]});
}

void pipeline_trainer::receive(const samples& m) {
  if (!stream_ || draining_ || !stream_->shard.is_current(current_sender())) {
    if (stream_ && stream_->shard.is_known(current_sender())) return;
    return sender_misbehaves("samples from a shard that was not asked");
  }
  const bool sized = options_.model->sized_values() != 0;
  if (m.range.count == 0 || m.data.size() != m.range.count * options_.sample_bytes ||
      (m.data.is_size_only() && !sized))
    return sender_misbehaves("samples of the wrong size");
  stream_->shard.samples_came(m.range, now());
  stream_->held.add_ready(m.range, m.data, options_.sample_bytes);
  pump();
}

void pipeline_trainer::receive(const lease_lost& m) {
  if (!stream_ || !stream_->shard.is_current(current_sender())) return;
  stream_->held.drop_ready(m.ranges);
  auto repeated = stream_->held.drop_computed(m.ranges);
  if (repeated.empty()) return;
  // The shard leases these samples again. Their gradients stay in the stages' sums, but the trainer
  // neither reports nor commits them.
  interval_set lost;
  for (const auto& range : repeated) lost.insert(range.first, range.end());
  for (auto& [number, ranges] : ranges_)
    for (const auto& range : std::exchange(ranges, {}))
      for (const auto& piece : lost.missing(range.first, range.end()))
        append_range(ranges, piece.first, piece.end);
  here().observe(samples_reported{"repeated: in a batch of a trainer that lost their lease",
                                  here().id(), epoch_, std::move(repeated)});
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
  auto& course = courses_[pass.number()];
  if (course.tries.empty()) course.begun = now();
  const auto timeout = timeout_of(what);
  const auto token = token_of(pass.number(), what);
  ++course.tries[token];
  flights_[token] = {pass.number(), what, *chosen, now(), now() + timeout};
  set_timer(timeout, task_timer, token);
  send(peers_.at(*chosen).address, std::move(m));
}

// -- answers --------------------------------------------------------------------------------------

std::uint64_t pipeline_trainer::token_of(std::uint64_t number, micro_batch::task what) const {
  return (number * options_.model->hops() + what.hop) * 2 +
         (what.kind == pass_kind::backward ? 1 : 0);
}

/// With large micro-batches or long queues, all answers are late.
duration pipeline_trainer::timeout_of(micro_batch::task what) const {
  const bool backward = what.kind == pass_kind::backward;
  return std::max(backward ? options_.backward_timeout : options_.forward_timeout,
                  5 * took_[options_.model->stage_of(what.hop)][backward ? 1 : 0]);
}

/// The peer has answered now, or will not have answered by now.
void pipeline_trainer::took(const flight& of) {
  auto& mean =
      took_[options_.model->stage_of(of.task.hop)][of.task.kind == pass_kind::backward ? 1 : 0];
  const auto time = now() - of.sent;
  mean = mean == duration{} ? time : mean + (time - mean) / 10;
}

/// A task of `pass` has ended.
void pipeline_trainer::task_ended(std::map<std::uint64_t, micro_batch>::iterator pass) {
  if (waits_) return pump();
  go_on(pass);
  start_more();
  close_if_done();
}

void pipeline_trainer::receive(const stage_output& m) {
  if (audits_.contains(m.number)) return audit_answered(m);
  const auto found =
      at_ == progress::open && m.epoch == epoch_ ? passes_.find(m.number) : passes_.end();
  const micro_batch::task what{m.backward != 0 ? pass_kind::backward : pass_kind::forward, m.hop};
  const auto peer = sender_peer();
  if (found == passes_.end() || !found->second.answered(what, peer, m.values)) return;
  const auto token = token_of(m.number, what);
  const auto stage = options_.model->stage_of(m.hop);
  if (const auto flight = flights_.find(token); flight != flights_.end()) {
    took(flight->second);
    if (const auto course = courses_.find(m.number); course != courses_.end())
      course->second.tasks.push_back({m.hop, stage, m.backward != 0, peer, flight->second.sent,
                                      now(), duration{static_cast<std::int64_t>(m.computed_ns)},
                                      course->second.tries[token]});
    flights_.erase(flight);
  }
  wiring_[stage].measured(peer, static_cast<double>(m.computed_ns) * 1e-9,
                          static_cast<double>(found->second.count()) *
                              (m.backward != 0 ? backward_size : 1));
  if (m.backward != 0) {
    if (m.hop == options_.model->last_hop())
      losses_[m.number] = static_cast<double>(m.loss_nanos) * 1e-9;
    send(peers_.at(peer).address, stage_count{address(), m.number, m.hop, m.epoch});
  }
  draw_audit(found->second, what, peer, m);
  task_ended(found);
}

void pipeline_trainer::receive(const stage_counted& m) {
  const auto found =
      at_ == progress::open && m.epoch == epoch_ ? passes_.find(m.number) : passes_.end();
  if (found == passes_.end()) return;
  if (m.counted == 0)
    return fail({m.number, {pass_kind::backward, m.hop}, sender_peer()},
                task_failure::gradient_gone);
  found->second.counted(m.hop, sender_peer());
  if (found->second.done()) {
    trained(found->second);
    note_course(found->second);
  }
  task_ended(found);
}

void pipeline_trainer::receive(const stage_refused& m) {
  if (const auto audit = audits_.find(m.number); audit != audits_.end()) {
    if (sender_peer() == audit->second.asked) ask_auditor(audit);
    return;
  }
  if (at_ != progress::open || m.epoch != epoch_) return;
  fail({m.number,
        {m.backward != 0 ? pass_kind::backward : pass_kind::forward, m.hop},
        sender_peer()},
       failure_of(static_cast<task_refusal>(m.why)));
}

/// Only the slowest micro-batch of a batch is worth a line in the log.
void pipeline_trainer::note_course(const micro_batch& pass) {
  const auto course = courses_.find(pass.number());
  if (course == courses_.end()) return;
  const auto begun = course->second.begun;
  if (now() - begun > slowest_.done - slowest_.begun)
    slowest_ = {epoch_, pass.number(), pass.count(), begun, now(), std::move(course->second.tasks)};
  courses_.erase(course);
}

void pipeline_trainer::note_failure(const flight& of, task_failure why) {
  here().observe(stage_task_failed{options_.model->stage_of(of.task.hop), of.task.hop,
                                   of.task.kind == pass_kind::backward, of.number, why});
}

void pipeline_trainer::fail(flight of, task_failure why) {
  const auto found = passes_.find(of.number);
  // A peer may name any hop.
  if (found == passes_.end() || of.task.hop >= options_.model->hops()) return;
  auto& pass = found->second;
  if (const auto flight = flights_.find(token_of(of.number, of.task));
      flight != flights_.end() && flight->second.peer == of.peer)
    flights_.erase(flight);
  const bool answered = why == task_failure::gradient_gone;
  if (!answered) ban(of.peer, why == task_failure::silent ? options_.ban : options_.refresh);
  if ((answered || pass.open(of.task)) && pass.peer_of(of.task) == of.peer) note_failure(of, why);
  pass.failed(of.task, of.peer);
  pump();
}

void pipeline_trainer::ban(peer_id peer, duration time) {
  if (!peers_.contains(peer)) return;
  auto& until = bans_[peer];
  until = std::max(until, now() + time); // an audit bans for ever
}

void pipeline_trainer::lose(peer_id peer, std::uint32_t stage) {
  std::erase_if(flights_, [&](const auto& one) {
    if (one.second.peer != peer) return false;
    note_failure(one.second, task_failure::peer_gone);
    return true;
  });
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

// -- audits ---------------------------------------------------------------------------------------

/// The trainer draws after the answer, so that no peer knows which of its outputs will be checked.
void pipeline_trainer::draw_audit(const micro_batch& pass, micro_batch::task what, peer_id by,
                                  const stage_output& m) {
  if (options_.audit_share <= 0 || audit_draws_.uniform() >= options_.audit_share) return;
  // The gradient of the first hop's parameters stays at its peer.
  if (what.kind == pass_kind::backward && what.hop == 0) return;
  const auto peer = peers_.find(by);
  if (peer == peers_.end() || peer->second.epoch != epoch_) return;
  auto task = task_of(pass, what);
  auto first = opinion_of(by, task, m);
  const auto number = task.number;
  task.number = ++numbers_; // as that of a further micro-batch
  const auto audit =
      audits_
          .emplace(task.number, running_audit{stage_audit(std::move(first), options_.model->width(),
                                                          check_tolerance(options_.activations)),
                                              std::move(task), number, peer->second.state})
          .first;
  audit->second.without.insert(by);
  ask_auditor(audit);
}

stage_audit::opinion pipeline_trainer::opinion_of(peer_id by, const stage_task& task,
                                                  const stage_output& m) const {
  auto values = unpack_activations(options_.activations, m.values, task.count * task.time,
                                   options_.model->width(), options_.model->sized_values());
  return {by, values ? std::move(*values) : std::vector<float>{},
          static_cast<double>(m.loss_nanos) * 1e-9};
}

/// Any peer of the stage with the same parameters, so that no peer can tell where its outputs go.
void pipeline_trainer::ask_auditor(std::map<std::uint64_t, running_audit>::iterator audit) {
  auto& [number, one] = *audit;
  if (one.asked != 0) one.without.insert(one.asked);
  const auto stage = options_.model->stage_of(one.task.hop);
  const auto away = banned();
  std::vector<const known_peer*> able;
  std::vector<peer_id> ids;
  for (const auto& [peer, known] : peers_)
    if (known.stage == stage && known.epoch == epoch_ && known.state == one.state &&
        !one.without.contains(peer) && !away.contains(peer)) {
      able.push_back(&known);
      ids.push_back(peer);
    }
  if (able.empty()) {
    const bool differ = one.of.opinions() > 1;
    if (differ) one.of.give_up();
    return end_audit(audit, differ ? audit_end::disputed : audit_end::unfinished);
  }
  const auto chosen = audit_draws_.below(able.size());
  one.asked = ids[chosen];
  const bool backward = one.task.backward != 0;
  set_timer(timeout_of({backward ? pass_kind::backward : pass_kind::forward, one.task.hop}),
            audit_timer, number);
  send(able[chosen]->address, one.task);
}

void pipeline_trainer::audit_answered(const stage_output& m) {
  const auto audit = audits_.find(m.number);
  auto& one = audit->second;
  if (sender_peer() != one.asked || m.hop != one.task.hop || m.backward != one.task.backward ||
      m.epoch != one.task.epoch)
    return;
  switch (one.of.add(opinion_of(one.asked, one.task, m))) {
  case stage_audit::verdict::right:
    return end_audit(audit, audit_end::right);
  case stage_audit::verdict::wrong:
    convict(one);
    audits_.erase(audit);
    return pump();
  default:
    return ask_auditor(audit);
  }
}

void pipeline_trainer::end_audit(std::map<std::uint64_t, running_audit>::iterator audit,
                                 audit_end how) {
  const auto& one = audit->second;
  here().observe(stage_audited{one.task.epoch, options_.model->stage_of(one.task.hop), one.task.hop,
                               one.task.backward != 0, one.number, one.of.opinions(), how, 0});
  audits_.erase(audit);
}

/// The tasks that the peers have now go to others. Gradients that have counted at them stay: they
/// are in the sums of the peers, which other peers average.
void pipeline_trainer::convict(const running_audit& audit) {
  for (const auto peer : audit.of.wrong_peers()) {
    // Another audit was under way when the peer was banned.
    if (const auto ban = bans_.find(peer); ban != bans_.end() && ban->second == duration::max())
      continue;
    here().observe(stage_audited{audit.task.epoch, options_.model->stage_of(audit.task.hop),
                                 audit.task.hop, audit.task.backward != 0, audit.number,
                                 audit.of.opinions(), audit_end::wrong, peer});
    misbehaviour(peer, "stage_output: two other hosts of the stage compute other values");
    bans_[peer] = duration::max();
    std::erase_if(flights_, [&](const auto& one) {
      if (one.second.peer != peer) return false;
      note_failure(one.second, task_failure::banned);
      passes_.at(one.second.number).failed(one.second.task, peer);
      return true;
    });
  }
}

} // namespace shoal::actors
