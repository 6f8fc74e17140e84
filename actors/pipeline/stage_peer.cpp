#include "actors/pipeline/stage_peer.hpp"

#include "actors/averaging/group.hpp"
#include "actors/averaging/part_reduction.hpp"
#include "actors/dht/host_record.hpp"
#include "actors/inference/activations.hpp"
#include "actors/observe.hpp"
#include "actors/pipeline/observations.hpp"
#include "actors/pipeline/probes.hpp"
#include "actors/training/optimizer_step.hpp"
#include "actors/trust/chain.hpp"
#include "actors/trust/identity.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace shoal::actors {

namespace {

// The mean of the share of its time in which a peer computes forgets in about so many seconds.
constexpr double busy_memory = 25;
// Look-ups of the own stage before a peer that found nobody begins with the first state.
constexpr std::uint32_t looks_before_start = 3;
// Largest number of samples in a micro-batch.
constexpr std::uint64_t most_samples = 1 << 16;

// The gradients of two hops may differ by any factor, and those of the first hops may vanish in a
// deep model. So a stage with several hops has no usual norm. It refuses only values near overflow.
constexpr auto any_norm_ratio = std::numeric_limits<double>::infinity();

announced_state state_in(const stage_record& one) {
  return {one.epoch, one.state, one.content};
}

// Each is as large as the stage's gradient.
constexpr std::size_t most_declined = 3;

/// The samples times hops in the mean. A part may lack some.
std::uint64_t weight_of(const round_result& result) {
  if (result.parts.empty()) return 0;
  const auto least =
      std::min_element(result.parts.begin(), result.parts.end(),
                       [](const auto& a, const auto& b) { return a.weight < b.weight; });
  return least->weight;
}

std::size_t bytes_of(const stage_task& m) {
  return m.samples.size() + m.input.size() + m.gradient.size();
}

/// The id of the first state of a stage.
state_id first_state(std::uint32_t stage, std::uint64_t seed) {
  hasher h;
  h.add(std::string_view{"shoal.pipeline"}).add(seed).add(std::uint64_t{stage});
  return state_id::from(h.finish());
}

} // namespace

result<state_ptr> initial_stage_state(const stage_model& model, std::uint32_t stage,
                                      const kernels::optimizer_config& optimizer,
                                      const std::vector<kernels::tensor_slot>& layout,
                                      std::span<const float> whole, std::uint64_t seed) {
  auto own = learn::gather(layout, whole, model.tensors_of(stage));
  if (!own) return failure{own.error()};
  auto out = std::make_shared<model_state>(fresh_state(optimizer, std::move(*own)));
  out->id = first_state(stage, seed);
  return state_ptr(std::move(out));
}

state_ptr sized_stage_state(const stage_model& model, std::uint32_t stage, std::uint64_t seed) {
  const auto values = kernels::end_of(model.tensors_of(stage));
  auto out = std::make_shared<model_state>();
  out->parameters = payload::size_only(sizeof(float) * values);
  out->optimizer = payload::size_only(2 * sizeof(float) * values);
  out->id = first_state(stage, seed);
  return out;
}

state_ptr state_of(const stage_state& m, const model_state& like) {
  const auto fits = [](const payload& a, const payload& b) {
    return a.size() == b.size() && a.is_size_only() == b.is_size_only();
  };
  if (!fits(m.parameters, like.parameters) || !fits(m.optimizer, like.optimizer)) return nullptr;
  auto out = std::make_shared<model_state>();
  out->epoch = m.epoch;
  out->id = m.id;
  out->step = m.step;
  out->samples = m.samples;
  out->parameters = m.parameters;
  out->optimizer = m.optimizer;
  return out;
}

id128 stage_content(const model_state& state) {
  const auto values = content_of(state);
  hasher h;
  h.add(values.high).add(values.low).add(state.step);
  return id128::from(h.finish());
}

stage_peer::stage_peer(caf::actor_config& config, host& on, stage_peer_config options)
    : protocol_actor(config, on), options_(std::move(options)), stage_(options_.stage.value_or(0)),
      book_(options_.target_batch * options_.model->hops()),
      shares_(options_.most_waiting, options_.most_waiting_bytes),
      trainers_(options_.batch_timeout), random_(on.random_stream("pipeline.peer")),
      jitter_(on.random_stream("pipeline.jitter")) {
  if (!options_.stage) mode_ = mode::choosing;
  SHOAL_CHECK(options_.model && stage_ < options_.model->stages() &&
                  options_.initial.size() == options_.model->stages() &&
                  options_.first_stage < options_.model->stages(),
              "a peer knows the states of all stages");
}

void stage_peer::on_exit() {
  if (group_) send_exit(group_, caf::exit_reason::user_shutdown);
  options_.dht = group_ = donor_ = nullptr;
  options_.on_step = nullptr;
  others_.clear();
  waiting_.clear();
  running_.reset();
  protocol_actor::on_exit();
}

void stage_peer::tell(peer_phase phase) {
  here().observe(
      phase_changed{phase, state_ ? state_->epoch : 0, state_ ? state_->id : state_id{}});
}

/// Observers see the load as often as other peers do. Without `state_` the peer has no stage yet.
void stage_peer::tell_load() {
  const auto over = now() - std::exchange(told_load_, now());
  const auto computed = std::exchange(untold_work_, {});
  if (state_ && over > duration{}) here().observe(stage_worked{stage_, over, computed});
}

caf::behavior stage_peer::make_behavior() {
  tell(peer_phase::joining);
  refresh();
  if (options_.rebalance_every > duration{}) set_timer(options_.rebalance_every, rebalance_timer);
  return {
      [this](const stage_task& m) { receive(m); },
      [this](const stage_count& m) { receive(m); },
      [this](const work_done& m) { m.token == 0 ? computed() : stepped(); },
      [this](const found& m) { receive(m); },
      [this](const trainer_progress& m) { receive(m); },
      [this](const stage_move_hint& m) { receive(m); },
      [this](const stage_state_request& m) { receive(m); },
      [this](const stage_state& m) { receive(m); },
      [this](const round_report& m) {
        group_ = nullptr;
        round_ended(*m.result);
      },
      [this](const tick& t) {
        if (t.kind == refresh_timer && t.token == refreshes_) refresh();
        if (t.kind == drain) {
          draining_ = true;
          if (group_) send(group_, tick{group_actor::cancel, 0});
        }
        if (t.kind == retry_timer || t.kind == trainers_timer) decide();
        if (t.kind == state_timer && t.token == state_asks_ && donor_) {
          donor_failed();
          decide();
        }
        if (t.kind == rebalance_timer) {
          if (writes_summary()) look_at_loads();
          set_timer(options_.rebalance_every, rebalance_timer);
        }
      },
  };
}

// -- records --------------------------------------------------------------------------------------

/// The peer needs new records: it has no state, its step has failed, or it does not know the others
/// of its stage yet.
bool stage_peer::waits() const {
  return !state_ || attempts_ > 0 || !has_looked_;
}

/// A peer that serves only renews its record: trainers' messages say when it has to read.
duration stage_peer::pace() const {
  return waits() ? options_.refresh : std::max(options_.refresh, options_.record_lifetime / 3);
}

void stage_peer::refresh() {
  const auto passed = now() - std::exchange(refreshed_, now());
  if (mode_ == mode::choosing) {
    set_timer(pace(), refresh_timer, ++refreshes_);
    const bool begins =
        std::all_of(totals_.begin(), totals_.end(), [](const auto& one) { return one.peers == 0; });
    if (++choices_ > looks_before_start && begins) return take_stage(options_.first_stage);
    return read_stages();
  }
  if (passed > duration{}) {
    const double share = to_seconds(std::exchange(computed_time_, {})) / to_seconds(passed);
    const double weight = std::min(1.0, to_seconds(passed) / busy_memory);
    busy_ += weight * (share - busy_);
    busy_weight_ += weight * (1 - busy_weight_);
  }
  publish();
  if (now() - told_load_ >= options_.record_lifetime / 3) tell_load();
  // The writers of a summary need new records. The others look now and then, in case they have
  // missed a message. The summaries show whether they have.
  const bool needs_records = waits() || writes_summary();
  if (needs_records) read_own_stage();
  const bool looks = now() - read_ >= options_.record_lifetime;
  if (looks) {
    read_ = now();
    read_stages();
  }
  if (state_ && (needs_records || looks)) read_trainers();
  if (mode_ == mode::joining) read_stages();
  set_timer(pace(), refresh_timer, ++refreshes_);
}

void stage_peer::read_own_stage() {
  reads_own_ = true;
  read_ = now();
  send(options_.dht, lookup{stage_key(options_.run, stage_), address(), 0});
}

void stage_peer::read_trainers() {
  reads_trainers_ = true;
  send(options_.dht, lookup{trainers_key(options_.run), address(), 0});
}

void stage_peer::read_stages() {
  stages_read_ = now();
  send(options_.dht, lookup{summaries_key(options_.run), address(), 0});
}

/// In parts of a million.
std::uint64_t stage_peer::busy() const {
  return busy_weight_ > 0 ? static_cast<std::uint64_t>(busy_ / busy_weight_ * 1e6) : 0;
}

/// Some peers of a stage write the summary, so that it outlives one of them. A peer that has just
/// begun to serve does not know the others. If each wrote one, a swarm that begins would have as
/// many summaries as peers.
bool stage_peer::writes_summary() const {
  if (!has_looked_) return false;
  return std::distance(others_.begin(), others_.lower_bound(here().id())) <
         static_cast<std::ptrdiff_t>(summary_writers);
}

void stage_peer::publish() {
  if (!state_) return;
  const stage_record mine{stage_, state_->epoch,         state_->id, book_.samples(),
                          busy(), moves_to_.has_value(), content_};
  send(options_.dht, store{stage_key(options_.run, stage_),
                           host_record(here(), address(), mine.pack(), options_.record_lifetime)});
  if (!writes_summary()) return;
  stage_summary all{stage_, state_->epoch, others_.size() + 1, mine.busy};
  for (const auto& [peer, one] : others_) {
    all.epoch = std::max(all.epoch, one.record.epoch);
    all.busy += one.record.busy;
  }
  all.busy /= all.peers;
  send(options_.dht, store{summaries_key(options_.run),
                           host_record(here(), address(), all.pack(), options_.record_lifetime)});
}

void stage_peer::receive(const found& m) {
  if (m.key == trainers_key(options_.run)) {
    reads_trainers_ = false;
    known_trainers::records read;
    for (const auto& each : m.records) {
      const auto record = trainer_record::unpack(each->value);
      if (!record || !each->address) continue;
      const auto at = caf::actor_cast<caf::strong_actor_ptr>(each->address);
      read[here().peer_of(at)] = {
          here().member_of(at),
          trainer_record{record->closed_for(stage_), record->samples, record->version, {}}};
    }
    trainers_.read(std::move(read));
    return decide();
  }
  if (m.key == summaries_key(options_.run)) return receive_summaries(m);
  if (m.key != stage_key(options_.run, stage_)) return;
  std::map<peer_id, known_peer> read;
  for (const auto& each : m.records)
    if (const auto record = stage_record::unpack(each->value);
        record && record->stage == stage_ && each->address) {
      const auto at = caf::actor_cast<caf::strong_actor_ptr>(each->address);
      const auto peer = here().peer_of(at);
      if (const auto gone = gone_.find(peer);
          gone == gone_.end() || gone->second < each->expires_utc_ns)
        read[peer] = {*record, each->address, here().member_of(at), each->expires_utc_ns};
    }
  read.erase(here().id());
  others_ = std::move(read);
  reads_own_ = false;
  ++looked_;
  if (const auto what = donor_ ? leading(former_) : std::nullopt) promised_.insert(*what);
  if (state_ && !std::exchange(has_looked_, true) && writes_summary()) publish();
  if (std::exchange(may_move_, false)) consider_move();
  // The summaries are old, or the record lies.
  const bool is_old = stages_read_ == duration{} || now() - stages_read_ >= options_.refresh;
  if (seems_ahead() && is_old) read_stages();
  decide();
}

// -- joining --------------------------------------------------------------------------------------

/// No stage is more than a step ahead of the others.
std::uint64_t stage_peer::most_epoch() const {
  std::vector<std::uint64_t> others;
  for (std::uint32_t s = 0; s < epochs_.size(); ++s)
    if (s != stage_ && totals_[s].peers > 0) others.push_back(epochs_[s]);
  // Before a look at the summaries, the own state says how far they are.
  if (const auto& own = state_ ? state_ : former_; others.empty() && own)
    others.push_back(own->epoch);
  return most_epoch_beside(std::move(others));
}

bool stage_peer::seems_ahead() const {
  return std::any_of(others_.begin(), others_.end(), [most = most_epoch()](const auto& one) {
    return one.second.record.epoch > most;
  });
}

/// The leading state of the stage, if `own` is one of the states that have a vote.
std::optional<announced_state> stage_peer::leading(const state_ptr& own) const {
  stage_votes votes;
  const auto most = most_epoch();
  for (const auto& [peer, one] : others_)
    if (one.record.epoch <= most) votes.add(one.member, state_in(one.record));
  if (own) votes.add(actors::member_of(here().key()), {own->epoch, own->id, content_});
  return votes.leading();
}

std::vector<const stage_peer::known_peer*> stage_peer::furthest(const state_ptr& than) const {
  const auto leading = this->leading(than);
  std::vector<const known_peer*> best;
  if (!leading || (than && leading->epoch <= than->epoch)) return best;
  for (const bool all : {false, true}) {
    for (const auto& [peer, one] : others_) {
      const auto failed = failed_donors_.find(peer);
      if (!all && failed != failed_donors_.end() && now() < failed->second.until) continue;
      if (state_in(one.record) == *leading) best.push_back(&one);
    }
    // A newcomer has no other state, unless the whole pipeline begins.
    if (!best.empty() || than || epoch_elsewhere() == options_.initial[stage_]->epoch) break;
  }
  return best;
}

void stage_peer::join() {
  if (donor_) return;
  const auto best = furthest(former_);
  const auto first = former_ ? former_ : options_.initial[stage_];
  if (best.empty()) {
    if (looked_ < looks_before_start) return;
    const auto epoch = epoch_elsewhere();
    const bool alone = std::all_of(others_.begin(), others_.end(), [this](const auto& one) {
      return failed_donors_.contains(one.first);
    });
    // If the peers that have gone on are dead, the other stages are a single step ahead, and wait
    // for this one.
    if (former_ && !(alone && epoch && *epoch == first->epoch + 1)) return adopt(first, 0);
    if (!epoch) return;
    if (*epoch > first->epoch) {
      if (now() - alone_since_ < 2 * options_.record_lifetime) return;
      auto anew = std::make_shared<model_state>(*first);
      anew->epoch = *epoch;
      hasher name;
      name.add(std::string_view{"shoal.stage.anew"}).add(first->id.high).add(first->id.low);
      anew->id = state_id::from(name.add(*epoch).finish());
      here().observe(stage_lost{stage_, *epoch});
      return adopt(std::move(anew), 0);
    }
  } else {
    alone_since_ = now();
  }
  // A peer that has moved may be a step ahead of its new stage.
  if ((best.empty() ? first->epoch : best.front()->record.epoch) < least_epoch_) return;
  // The first state has the same bits everywhere.
  if (best.empty() ||
      (best.front()->record.state == first->id && best.front()->record.epoch == first->epoch))
    return adopt(first, 0);
  const auto& donor = *best[random_.below(best.size())];
  donor_ = donor.address;
  promised_ = {state_in(donor.record)};
  tell(peer_phase::downloading);
  monitor(donor_);
  send(donor_, stage_state_request{address(), stage_});
  set_timer(options_.state_timeout, state_timer, ++state_asks_);
}

void stage_peer::donor_failed() {
  auto& failed = failed_donors_[here().peer_of(caf::actor_cast<caf::strong_actor_ptr>(donor_))];
  constexpr unsigned most_doublings = 6;
  failed.until = now() + options_.state_timeout * (1U << std::min(failed.count++, most_doublings));
  forget_donor();
}

void stage_peer::forget_donor() {
  demonitor(donor_);
  donor_ = nullptr;
}

/// The record of a dead donor lives on for a while, so another look-up may find it again.
void stage_peer::on_down(const caf::actor_addr& whom) {
  if (!donor_ || caf::actor_cast<caf::actor_addr>(donor_) != whom) return;
  std::erase_if(others_, [&](const auto& one) {
    if (one.second.address != donor_) return false;
    gone_[one.first] = one.second.expires;
    return true;
  });
  donor_failed();
  set_timer(options_.refresh, retry_timer);
}

void stage_peer::receive(const stage_state_request& m) {
  if (!is_senders(m.reply_to)) return sender_misbehaves("a state that goes to another host");
  if (!state_ || m.stage != stage_)
    return send(m.reply_to, stage_state{m.stage, 0, 0, 0, {}, {}, {}});
  send(m.reply_to, stage_state{stage_, state_->epoch, state_->step, state_->samples, state_->id,
                               state_->parameters, state_->optimizer});
}

void stage_peer::receive(const stage_state& m) {
  if (!donor_ || !sent_by(donor_) || state_) return;
  auto made = m.stage == stage_ ? state_of(m, *options_.initial[stage_]) : nullptr;
  const bool is_later = made && (!former_ || made->epoch > former_->epoch);
  if (!is_later) {
    if (!made && !m.parameters.empty()) sender_misbehaves("a state of another size");
    donor_failed();
    return set_timer(options_.refresh, retry_timer);
  }
  if (!promised_.contains({made->epoch, made->id, stage_content(*made)})) {
    const bool lies = std::any_of(promised_.begin(), promised_.end(), [&](const auto& one) {
      return one.epoch == made->epoch && one.state == made->id;
    });
    if (lies) {
      sender_misbehaves("a state other than the one that its record names");
      donor_failed();
    } else {
      // The donor has made a step since, perhaps. The next records say so.
      failed_donors_[sender_peer()].until = now() + 2 * options_.refresh;
      forget_donor();
    }
    return set_timer(options_.refresh, retry_timer);
  }
  forget_donor();
  const auto bytes = made->bytes();
  adopt(std::move(made), bytes);
}

void stage_peer::adopt(state_ptr state, std::uint64_t bytes) {
  tell_load(); // from now on, work is that of the stage
  // The gradients belong to the state before.
  if (former_ && former_ != state) drop_gradients(*former_);
  if (former_ != state) failed_donors_.clear();
  former_ = nullptr;
  state_ = std::move(state);
  content_ = stage_content(*state_);
  declined_.clear();
  mode_ = mode::serving;
  attempts_ = 0;
  has_looked_ = false;
  trainers_.begin_batch(now());
  here().observe(stage_joined{stage_, state_->epoch, bytes});
  if (bytes > 0) here().observe(adopted{state_->epoch, state_->id, bytes});
  tell(peer_phase::computing);
  publish();
  decide();
}

// -- tasks ----------------------------------------------------------------------------------------

void stage_peer::refuse(const stage_task& m, task_refusal why) {
  send(m.reply_to,
       stage_refused{m.number, m.hop, m.backward, m.epoch, static_cast<std::uint8_t>(why)});
}

void stage_peer::receive(const stage_task& m) {
  if (!is_senders(m.reply_to)) return sender_misbehaves("a task whose answer goes to another host");
  const auto& model = *options_.model;
  if (m.hop >= model.hops() || model.stage_of(m.hop) != stage_)
    return refuse(m, task_refusal::stage);
  if (!state_) return refuse(m, task_refusal::not_ready);
  // This peer has missed a step.
  if (m.epoch > state_->epoch && !reads_own_ && now() - read_ >= options_.refresh) read_own_stage();
  if (m.epoch != state_->epoch || mode_ != mode::serving) return refuse(m, task_refusal::epoch);
  const bool end = m.hop == 0 || m.hop == model.last_hop();
  if (m.count == 0 || m.count > most_samples || m.time == 0 || m.time > most_samples ||
      !activation_codec(m.codec) || m.samples.empty() == end ||
      (m.samples.is_size_only() && model.sized_values() == 0) ||
      (m.backward == 0 && m.hop == model.last_hop()))
    return refuse(m, task_refusal::values);
  if (!shares_.fits(sender_member(), bytes_of(m))) return refuse(m, task_refusal::too_many);
  here().probe(pipeline_probes::task_received);
  shares_.add(sender_member(), bytes_of(m));
  job next;
  next.what = m;
  next.whose = sender_member();
  next.time = duration{static_cast<std::int64_t>(std::llround(
      static_cast<double>(options_.sample_time.count() * static_cast<std::int64_t>(m.count)) *
      (m.backward != 0 ? backward_size : 1)))};
  waiting_.push_back(std::move(next));
  start_job();
}

void stage_peer::start_job() {
  if (running_ || waiting_.empty()) return;
  running_ = std::make_shared<job>(std::move(waiting_.front()));
  waiting_.pop_front();
  shares_.remove(running_->whose, bytes_of(running_->what));
  if (options_.jitter > 0)
    running_->time = from_seconds(to_seconds(running_->time) *
                                  std::max(0.1, jitter_.normal(1, options_.jitter)));
  const auto work = [model = options_.model, at = state_, of = running_,
                     conduct = options_.averaging.conduct] {
    const auto& m = of->what;
    const auto codec = *activation_codec(m.codec);
    const auto rows = m.count * m.time, width = model->width();
    const auto unpack = [&](const payload& from, bool needed) {
      return needed ? unpack_activations(codec, from, rows, width, model->sized_values())
                    : result<std::vector<float>>(std::vector<float>{});
    };
    of->failed = true;
    const auto in = unpack(m.input, m.hop > 0);
    const auto slope = unpack(m.gradient, m.backward != 0 && m.hop < model->last_hop());
    if (!in || !slope) return;
    if (model->sized_values() != 0) {
      if (m.backward == 0 || m.hop > 0) of->values.resize(rows * width);
      of->failed = false;
      return;
    }
    const auto samples = m.samples.empty() ? std::span<const std::byte>{} : m.samples.bytes();
    const auto parameters = at->parameters.floats();
    if (m.backward == 0) {
      auto out = model->forward(m.hop, parameters, samples, m.count, *in);
      if (!out) return;
      of->values = std::move(*out);
    } else {
      of->gradient.assign(parameters.size(), 0);
      auto out = model->backward(m.hop, parameters, samples, m.count, *in, *slope, of->gradient);
      // Absurd inputs of another host make such gradients.
      if (!out || !can_be_averaged(of->gradient)) return;
      of->values = std::move(out->gradient_in);
      of->loss = out->loss;
    }
    conduct->computed_layers(of->values);
    of->failed = false;
  };
  here().run("pipeline", work, running_->time, caf::actor_cast<caf::actor>(this), 0);
}

void stage_peer::computed() {
  const auto done = std::exchange(running_, nullptr);
  if (!done) return;
  here().probe(pipeline_probes::task_computed);
  computed_time_ += done->time;
  untold_work_ += done->time;
  auto& m = done->what;
  if (!state_ || m.epoch != state_->epoch || mode_ != mode::serving) {
    refuse(m, task_refusal::epoch);
  } else {
    auto values = done->failed
                      ? result<payload>(failure{})
                      : pack_activations(*activation_codec(m.codec), std::move(done->values),
                                         options_.model->width(), options_.model->sized_values());
    if (!values) {
      refuse(m, task_refusal::values);
    } else {
      const pass_id pass{here().peer_of(caf::actor_cast<caf::strong_actor_ptr>(m.reply_to)),
                         m.number};
      if (m.backward != 0) book_.hold(pass, m.hop, m.count, std::move(done->gradient));
      stage_output out{m.number, m.hop, m.backward, m.epoch, std::move(*values)};
      out.loss_nanos = std::llround(done->loss * 1e9);
      out.computed_ns = static_cast<std::uint64_t>(done->time.count());
      send(m.reply_to, std::move(out));
      here().probe(pipeline_probes::output_sent);
    }
  }
  start_job();
}

void stage_peer::receive(const stage_count& m) {
  if (!is_senders(m.reply_to))
    return sender_misbehaves("a count whose answer goes to another host");
  stage_counted out{m.number, m.hop, m.epoch, 0};
  if (state_ && m.epoch == state_->epoch && mode_ == mode::serving) {
    const pass_id pass{sender_peer(), m.number};
    const auto before = book_.samples();
    const auto done = book_.count(pass, m.hop);
    out.counted = done == gradient_book::answer::unknown ? 0 : 1;
    if (done == gradient_book::answer::counted)
      here().observe(gradient_counted{m.epoch, stage_, m.hop, pass, book_.samples() - before});
    here().probe(pipeline_probes::gradient_counted);
  }
  send(m.reply_to, out);
  here().probe(pipeline_probes::count_confirmed);
}

// -- averaging ------------------------------------------------------------------------------------

bool stage_peer::batch_is_closed() {
  if (trainers_.is_closed(state_->epoch, now())) return true;
  if (const auto due = trainers_.due()) set_timer(*due - now(), trainers_timer);
  return false;
}

/// When all trainers seem to have closed the batch, the records say whether they have.
void stage_peer::receive(const trainer_progress& m) {
  if (!state_ || sender_peer() == 0) return;
  trainers_.told(sender_peer(), sender_member(), {m.closed, m.samples, m.version, {}});
  if (!batch_is_closed()) return decide();
  read_own_stage();
  read_trainers();
}

/// The samples times hops of a batch in this stage.
std::uint64_t stage_peer::whole_batch() const {
  const auto samples = options_.trusts_trainers
                           ? trainers_.samples(state_->epoch, options_.target_batch)
                           : options_.target_batch;
  return samples * options_.model->hops_of(stage_);
}

stage_peer::state_peers stage_peer::peers_at_state() const {
  state_peers out;
  for (const auto& [peer, one] : others_) {
    if (one.record.epoch != state_->epoch || one.record.state != state_->id) continue;
    out.all.push_back({peer, one.address});
    (failing_.suspects(one.member, state_->epoch) ? out.suspected : out.trusted) +=
        one.record.counted;
  }
  return out;
}

void stage_peer::decide() {
  if (mode_ == mode::choosing) return;
  if (mode_ == mode::joining) return join();
  if (mode_ == mode::stepping || group_ || draining_ || steps_with_others()) return;
  if (!furthest(state_).empty()) {
    former_ = std::exchange(state_, nullptr);
    mode_ = mode::joining;
    set_timer(pace(), refresh_timer, ++refreshes_);
    return join();
  }
  if (mode_ != mode::serving || reads_own_ || reads_trainers_) return;
  if (batch_is_closed()) return start_round();
  attempts_ = 0; // a trainer has opened the batch again
}

void stage_peer::drop_gradients(const model_state& of) {
  if (book_.samples() > 0) here().observe(gradients_dropped{stage_, of.epoch, book_.samples()});
  book_.clear();
}

void stage_peer::start_round() {
  round_request request;
  request.epoch = state_->epoch;
  request.state = state_->id;
  own_ = request.weight = book_.samples();
  if (!options_.codecs.empty()) request.codecs = options_.codecs[stage_];
  const auto size = kernels::end_of(options_.model->tensors_of(stage_));
  if (options_.model->sized_values() != 0) {
    request.values = payload::size_only(sizeof(float) * size);
  } else {
    auto mean = book_.mean();
    // Each sample has counted once for each hop of the stage.
    for (auto& value : mean) value *= static_cast<float>(options_.model->hops_of(stage_));
    if (mean.empty()) mean.resize(size);
    request.values = payload{std::move(mean)};
  }
  auto peers = peers_at_state();
  request.expected = std::move(peers.all);
  // Records may be older than the batch. So at first only a group with the whole batch succeeds.
  // Otherwise a second group of the stage would lose its gradients.
  if (attempts_ == 0) tries_since_ = now();
  const auto waited = now() - tries_since_;
  // Claims of suspected members decide on no sample that others say they have.
  const auto whole = whole_batch(), trusted = own_ + peers.trusted;
  needed_ = std::min(whole, std::max(trusted, whole - std::min(whole, peers.suspected)));
  // The record of a dead peer lives on. Other peers have computed its gradients again, so the
  // records may have them twice, and no group has more than the batch.
  request.known_samples =
      waited < batch_patience() ? needed_ : std::min(trusted + peers.suspected, needed_);
  if (waited < 2 * batch_patience()) request.quorum = request.known_samples;
  // Peers without gradients are not in a quorum, but they need the step.
  request.grace = 2 * options_.refresh;
  request.rate_up = here().rate_up();
  request.rate_down = here().rate_down();
  request.dht = options_.dht;
  auto how = options_.averaging;
  if (how.max_norm_ratio > 0 && options_.model->hops_of(stage_) > 1)
    how.max_norm_ratio = any_norm_ratio;
  failing_.prepare(request);
  mode_ = mode::averaging;
  tell(peer_phase::averaging);
  ++attempts_;
  group_ = spawn<group_actor>(std::ref(here()), caf::actor_cast<caf::actor>(this), std::move(how),
                              std::move(request));
}

void stage_peer::round_ended(const round_result& result) {
  if (mode_ != mode::averaging) return;
  failing_.learn(result);
  const auto counted = weight_of(result);
  std::uint64_t offered = 0;
  for (const auto& member : result.members) offered += member.weight;
  // The reducers have refused a contribution, and would refuse it again.
  const bool refused = result.reason == reason::bad_message && offered >= needed_;
  const bool doubtful = now() - tries_since_ >= batch_patience();
  if (result.succeeded() && (counted >= needed_ || refused || doubtful)) {
    if (counted >= needed_)
      patience_.kept();
    else if (!refused)
      patience_.missed();
    return step(result);
  }
  mode_ = mode::serving;
  if (result.succeeded()) {
    if (declined_.size() >= most_declined) declined_.erase(declined_.begin());
    declined_.push_back(result);
  }
  tell(peer_phase::computing);
  const auto pause = static_cast<double>(std::min<std::uint64_t>(attempts_, 8)) *
                     (0.5 + random_.uniform()) * to_seconds(options_.refresh);
  set_timer(from_seconds(pause), retry_timer);
  refresh();
}

state_id stage_peer::state_by(const round_result& result) const {
  SHOAL_CHECK(result.certificate, "a round that has succeeded has a certificate");
  return state_after(state_->id, result.group, result.certificate->version);
}

/// The peers of a round begin to wait at different times, so one may give up before the others.
bool stage_peer::steps_with_others() {
  if (mode_ != mode::serving) return false;
  const auto taken = [this](const round_result& one) {
    const auto after = state_by(one);
    return std::any_of(others_.begin(), others_.end(), [&](const auto& other) {
      return other.second.record.epoch == state_->epoch + 1 && other.second.record.state == after;
    });
  };
  const auto found = std::find_if(declined_.begin(), declined_.end(), taken);
  if (found == declined_.end()) return false;
  patience_.missed();
  step(*found);
  return true;
}

void stage_peer::step(const round_result& result) {
  mode_ = mode::stepping;
  counted_ = weight_of(result);
  trainers_.stepped(state_->epoch);
  after_ = state_by(result);
  step_group_ = result.group;
  step_members_ = result.members.size();
  std::uint64_t weight = 0;
  for (const auto& part : result.parts) weight = std::max(weight, part.weight);
  next_state_ = std::make_shared<next_state>();
  auto work = [model = options_.model, stage = stage_, before = state_, mean = result.values,
               after = after_, how = options_.optimizer, out = next_state_,
               samples = weight / options_.model->hops_of(stage_)] {
    auto next = std::make_shared<model_state>(*before);
    if (model->sized_values() == 0)
      *next = step_from(*before, how, mean, model->tensors_of(stage), model->decays());
    else
      ++next->step;
    next->epoch = before->epoch + 1;
    next->id = after;
    next->samples = before->samples + samples;
    out->content = stage_content(*next);
    out->state = std::move(next);
  };
  here().run("pipeline.step", std::move(work), options_.step_time,
             caf::actor_cast<caf::actor>(this), 1);
}

void stage_peer::stepped() {
  if (mode_ != mode::stepping || !next_state_) return;
  const auto before = state_->id;
  state_ = next_state_->state;
  content_ = std::exchange(next_state_, nullptr)->content;
  trainers_.begin_batch(now());
  mode_ = mode::serving;
  book_.clear();
  declined_.clear();
  attempts_ = 0;
  if (now() - told_load_ >= options_.refresh) tell_load();
  here().observe(stage_stepped{stage_, state_->epoch, before, state_->id, step_group_, own_,
                               step_members_, counted_});
  tell(peer_phase::computing);
  if (options_.on_step) options_.on_step(stage_, state_);
  if (moves_to_) return move_if_due();
  set_timer(pace(), refresh_timer, ++refreshes_);
  publish();
  decide();
}

} // namespace shoal::actors
