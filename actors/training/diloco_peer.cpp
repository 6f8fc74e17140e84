#include "actors/training/diloco_peer.hpp"

#include "actors/averaging/messages.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/probes.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

namespace {

constexpr unsigned most_missed_steps = 2; // then the peer downloads the leading state

std::shared_ptr<const diloco_workload> work_of(const state_pool& pool) {
  auto out = std::dynamic_pointer_cast<const diloco_workload>(pool.shared_work());
  SHOAL_CHECK(out != nullptr, "peers of DiLoCo step with a diloco_workload");
  return out;
}

state_id state_after(const model_state& before, const round_result& result) {
  hasher id;
  id.add(before.id.high).add(before.id.low).add(result.group.high).add(result.group.low);
  for (const auto& part : result.parts)
    for (auto sender : part.senders) id.add(sender).add(result.members[sender].weight);
  return state_id::from(id.finish());
}

/// In the contributions of all whose data is in the result.
std::uint64_t samples_in(const round_result& result) {
  std::vector<bool> sends(result.members.size());
  for (const auto& part : result.parts)
    for (auto sender : part.senders) sends[sender] = true;
  std::uint64_t out = 0;
  for (std::size_t m = 0; m < sends.size(); ++m)
    if (sends[m]) out += index_count(result.members[m].samples);
  return out;
}

} // namespace

diloco_peer::diloco_peer(caf::actor_config& config, host& on, peer_config options,
                         diloco_options how, std::shared_ptr<state_pool> pool, caf::actor dht)
    : training_peer(config, on, std::move(options),
                    {.repeats_steps = true,
                     .steps_locally = true,
                     .method_state_bytes = work_of(*pool)->method_state_bytes(),
                     .follows_steps = true,
                     .untimed_rounds = true,
                     .most_weight = 1},
                    pool, std::move(dht)),
      how_(std::move(how)), work_(work_of(*pool)) {}

void diloco_peer::on_exit() {
  local_.reset();
  base_.reset();
  given_.reset();
  anchor_ = {};
  average_.reset();
  next_local_.reset();
  next_outer_.reset();
  work_.reset();
  training_peer::on_exit();
}

void diloco_peer::discard_work() {
  if (!base_) { // the first state of all has an inner optimizer
    base_ = state();
    auto outer = *base_;
    outer.optimizer = {};
    set_state(std::make_shared<const model_state>(std::move(outer)));
  }
  auto local = *base_;
  local.parameters = state()->parameters;
  local_ = std::make_shared<const model_state>(std::move(local));
  anchor_ = state()->parameters;
  given_.reset();
  steps_ = attempts_ = samples_before_ = 0;
  contributes_ = false;
  average_.reset();
}

state_ptr diloco_peer::saved_state() const {
  auto out = *state();
  out.optimizer = base_->optimizer;
  out.step = base_->step;
  return std::make_shared<const model_state>(std::move(out));
}

std::uint64_t diloco_peer::given_after() const {
  return interval() - static_cast<std::uint64_t>(work_->schedule().delay);
}

double diloco_peer::missing_samples() const {
  const auto steps = std::max(interval(), steps_) - steps_;
  const auto own = static_cast<double>(steps * options_.micro_batch);
  return speed() > 0 ? own / speed() * swarm_speed() : own;
}

// -- decisions ------------------------------------------------------------------------------------

void diloco_peer::decide() {
  if (draining()) return leave();
  if (!heard()) return;
  auto lead = leading();
  if (!options_.conduct->follows(lead, own_branch())) lead = own_branch();
  switch (current_mode()) {
  case mode::joining:
    if (lead != own_branch()) return start_download();
    enter(mode::computing);
    publish();
    break;
  case mode::computing:
  case mode::averaging:
    break;
  default:
    return;
  }
  if (applying_) return;
  if (has_group()) {
    if (lead != own_branch())
      cancel_group();
    else
      tell_group(expected(), 1 + others().peers_on(own_branch()).size());
  } else if (!average_) {
    if (has_ended()) return enter(mode::stopped);
    if (lead != own_branch()) {
      if (!follow()) return;
    } else if (round_due()) {
      start_round();
    }
  }
  local_step();
}

bool diloco_peer::follow() {
  if (fetches_step()) return true;
  if (risked_ == state()->id) { // the others may have taken these local steps
    start_download();
    return false;
  }
  fetch_step([this](std::optional<taken_step> step) { step_fetched(std::move(step)); });
  if (fetches_step()) return true;
  start_download(); // nobody has the step: the others are on another branch
  return false;
}

void diloco_peer::step_fetched(std::optional<taken_step> step) {
  if (current_mode() != mode::computing || applying_) return;
  if (!step || !follows_state(*step)) {
    if (++missed_steps_ > most_missed_steps) {
      missed_steps_ = 0;
      return start_download();
    }
    try_again_in(options_.min_refresh);
    return look_up_progress();
  }
  missed_steps_ = 0;
  applying_ = true;
  next_outer_ = std::make_shared<outer_result>();
  auto work = [pool = pool(), before = state(), step = *step, out = next_outer_] {
    out->outer = pool->step(before, step.gradient, step.after, step.samples - before->samples);
  };
  compute(std::move(work), 0, [this, step = std::move(*step)] {
    followed(step, std::exchange(next_outer_, nullptr)->outer);
  });
}

void diloco_peer::followed(taken_step step, const state_ptr& after) {
  applying_ = false;
  const auto bytes = step.gradient.size();
  step.gradient = pool()->gradient_between(state(), after, std::move(step.gradient));
  keep_served(state(), std::move(step));
  parent_ = state()->id;
  set_state(after);
  pool()->offer(after);
  attempts_ = 0;
  here().observe(adopted{after->epoch, after->id, bytes, false, true, true});
  decide();
  publish();
  look_up_progress();
}

// -- local steps ----------------------------------------------------------------------------------

void diloco_peer::local_step() {
  if (held().running() || current_mode() != mode::computing || steps_ >= interval()) return;
  const auto wanted = std::min<std::uint64_t>(options_.micro_batch, options_.prefetch_samples);
  if (held().ready() < wanted) return request_samples();
  auto job = take_samples(wanted);
  next_local_ = std::make_shared<local_result>();
  auto work = [work = work_, at = local_, blocks = job.blocks, count = job.samples,
               out = next_local_, conduct = options_.conduct, epoch = state()->epoch] {
    conduct->before_gradient(epoch);
    const auto& inner = work->inner();
    const auto& learning = conduct->learns_by(inner, epoch);
    auto mean = payload::size_only(4 * inner.value_count());
    if (!inner.is_size_only()) {
      std::vector<double> sum(inner.value_count());
      for (const auto& block : blocks)
        out->loss_sum += learning.accumulate(*at, block.data.bytes(), block.range.count, sum);
      mean = mean_gradient(sum, count);
    }
    out->local = std::make_shared<const model_state>(inner.step(*at, mean));
  };
  const auto count = job.samples;
  held().start(std::move(job));
  compute(
      std::move(work), count, [this] { local_step_done(); }, true);
  request_samples();
  announce();
}

void diloco_peer::local_step_done() {
  auto job = finished_job();
  const auto result = std::exchange(next_local_, nullptr);
  if (!job) return decide();
  local_ = result->local;
  auto ranges = job->ranges();
  here().observe(trained{state()->epoch, ranges, result->loss_sum});
  options_.conduct->count_samples(ranges, held().none_computed());
  held().add_computed(ranges, job->samples);
  measure_speed(*job);
  here().probe(probes::training_step);
  ++steps_;
  if (steps_ == given_after() || steps_ == interval()) {
    // The records say whether the others have gone on: the peer gives nothing to an old round.
    done_ = now();
    if (steps_ == given_after()) given_ = local_;
    publish();
    look_up_progress();
  }
  if (average_ && steps_ >= interval()) return apply();
  if (has_group() && steps_ >= interval()) enter(mode::averaging);
  decide();
  announce();
}

// -- rounds ---------------------------------------------------------------------------------------

bool diloco_peer::round_due() const {
  return steps_ >= given_after() && !fetches_step() && others().looked() >= done_ &&
         now() >= not_before_ && may_lead();
}

std::optional<double> diloco_peer::seconds_until_done(const progress_table::entry& of) const {
  const auto& what = of.what;
  const auto speed = static_cast<double>(what.millisamples_per_second) / 1000;
  if (speed <= 0) return std::nullopt;
  // The record promises the samples of the running step.
  const auto running = what.computes_for_ms > 0 ? options_.micro_batch : 0;
  const auto done = what.samples - std::min<std::uint64_t>(what.samples, running);
  const auto needed = interval() * options_.micro_batch;
  if (done >= needed) return 0;
  // The running step began when the peer first promised its samples, before the look that found the
  // record. A clock that is wrong cannot move that time behind the look, nor before all live
  // records.
  const auto began = of.counted_expires_utc_ns - options_.record_lifetime.count();
  const auto seen = now() - of.counted;
  const auto age = std::clamp(duration{here().utc_ns() - began}, seen,
                              std::max(seen, duration{options_.record_lifetime}));
  return static_cast<double>(needed - done) / speed - to_seconds(age);
}

std::vector<expected_peer> diloco_peer::expected() const {
  auto out = others().expected_on(state()->epoch, state()->id, parent_);
  if (how_.quorum == 0) return out;
  std::erase_if(out, [this](const expected_peer& one) {
    const auto wait = seconds_until_done(others().at(one.peer));
    return !wait || *wait > to_seconds(how_.grace);
  });
  return out;
}

duration diloco_peer::longest_wait() const {
  double longest = 0;
  for (const auto& one : others().expected_on(state()->epoch, state()->id, parent_))
    longest = std::max(longest, seconds_until_done(others().at(one.peer)).value_or(0));
  return from_seconds(longest);
}

void diloco_peer::start_round() {
  round_request request;
  request.epoch = state()->epoch;
  request.state = state()->id;
  request.weight = 1;
  request.must_be_finite = true;
  request.expected = expected();
  request.known_samples = 1 + others().peers_on(own_branch()).size();
  request.quorum = how_.quorum;
  request.grace = how_.grace;
  request.max_wait = 4 * options_.averaging.poll_interval;
  request.awaited = longest_wait();
  // The peer may have taken further steps while it read the records.
  const auto given = std::exchange(given_, nullptr);
  request.values =
      work_->contribution(state()->epoch, anchor_, (given ? given : local_)->parameters);
  const auto which =
      kernels::fragment_of_round(work_->schedule(), static_cast<std::int64_t>(state()->epoch));
  if (which < how_.codecs.size()) request.codecs = how_.codecs[which];
  options_.conduct->ask_for_round(request);
  held().begin_round();
  samples_before_ = held().counted();
  contributes_ = true;
  ++attempts_;
  publish();
  if (steps_ >= interval()) enter(mode::averaging);
  auto how = options_.averaging;
  how.matchmaking_time += request.awaited;
  start_group(std::move(request), how);
}

void diloco_peer::round_ended(const round_result& result) {
  if (!contributes_) return; // the samples of the round have been given back
  contributes_ = false;
  if (!result.succeeded()) {
    held().retry_round();
    if (!result.group.is_zero()) risked_ = state()->id;
    if (current_mode() == mode::averaging) enter(mode::computing);
    if (result.reason == reason::not_finite) give_back_work(); // local steps have gone astray
    if (result.reason != reason::cancelled) give_up_round();
    publish();
    look_up_progress();
    return decide();
  }
  send_commit(result);
  note_round(result);
  held().end_round();
  average_ = average{work_->padded(result.values), result.group, state_after(*state(), result),
                     samples_in(result)};
  if (steps_ >= interval() && !held().running()) return apply();
  decide();
}

/// The next attempt begins later: the other members need time to see that the round is over.
void diloco_peer::give_up_round() {
  auto pause =
      options_.min_refresh * (1 + static_cast<std::int64_t>(std::min<std::uint64_t>(attempts_, 8)));
  pause += duration{static_cast<std::int64_t>(
      backoff().below(static_cast<std::uint64_t>(options_.min_refresh.count()) + 1))};
  not_before_ = now() + pause;
  try_again_in(pause);
}

void diloco_peer::apply() {
  applying_ = true;
  next_outer_ = std::make_shared<outer_result>();
  auto work = [pool = pool(), work = work_, before = state(), local = local_, anchor = anchor_,
               what = *average_, out = next_outer_, conduct = options_.conduct] {
    conduct->before_step(before->epoch);
    out->outer = pool->step(before, what.mean, what.after, what.samples);
    const auto& outer = out->outer->parameters;
    out->local = work->blended(before->epoch, outer, local->parameters);
    // Other fragments of the anchor may be older than the outer state, which the peer followed.
    out->anchor = anchor.same_memory(before->parameters)
                      ? outer
                      : work->replaced(before->epoch, outer, anchor);
  };
  compute(std::move(work), 0, [this] { applied(); });
}

void diloco_peer::applied() {
  applying_ = false;
  const auto result = std::exchange(next_outer_, nullptr);
  if (!average_) return decide(); // given up meanwhile
  const auto what = *std::exchange(average_, std::nullopt);
  const auto& next = result->outer;
  keep_served(state(), taken_step{next->epoch, next->id, next->samples,
                                  pool()->gradient_between(state(), next, what.mean)});
  parent_ = state()->id;
  set_state(next);
  pool()->offer(next);
  auto local = *local_;
  local.parameters = result->local;
  local_ = base_ = std::make_shared<const model_state>(std::move(local));
  anchor_ = result->anchor;
  steps_ = attempts_ = 0;
  held().uncount(std::exchange(samples_before_, 0));
  here().observe(stepped{next->epoch, parent_, next->id, what.group});
  checkpoint_if_due();
  enter(mode::computing);
  decide(); // starts the next step first, so that what is published promises its samples
  publish();
  look_up_progress();
}

} // namespace shoal::actors
