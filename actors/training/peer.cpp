#include "actors/training/peer.hpp"

#include "actors/data/sample_ranges.hpp"
#include "actors/probes.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/check.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::actors {

namespace {
// After so many failed rounds from one state, the peer doubts the samples that others claim.
constexpr std::uint64_t doubtful_attempts = 2;
} // namespace

void peer::on_exit() {
  step_taken_ = nullptr;
  contribution_ = {nullptr, {}};
  training_peer::on_exit();
}

std::uint64_t peer::samples_known() const {
  return promised() + others().samples_on(own_branch());
}

double peer::missing_samples() const {
  return static_cast<double>(options_.target_batch) - static_cast<double>(promised()) -
         others().samples_expected_on(own_branch(), now(), stepped_);
}

/// Others may still compute what their records promise. A peer that doubts too early begins a long
/// job, and misses those that come just then.
bool peer::doubts_claims() const {
  if (round_attempts_ < doubtful_attempts) return false;
  const auto job = speed() > 0 ? static_cast<double>(options_.micro_batch) / speed() : 0;
  return to_seconds(now() - first_attempt_) >= job;
}

std::uint64_t peer::next_job_samples() const {
  const auto missing = missing_samples();
  if (missing <= 0) {
    if (!doubts_claims() || promised() >= options_.target_batch) return 0;
    return std::min(options_.micro_batch, options_.target_batch - promised());
  }
  auto own = speed();
  auto share =
      own > 0 ? missing * own / (own + others().samples_per_second_near(state()->epoch)) : missing;
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(share)), 1,
                                   options_.micro_batch);
}

void peer::decide() {
  if (draining()) return leave();
  if (!heard()) return;
  auto lead = leading();
  if (!options_.conduct->follows(lead, own_branch())) lead = own_branch();
  switch (current_mode()) {
  case mode::joining:
    if (lead == own_branch()) {
      if (branch_is_open()) return;
      enter(mode::computing);
      publish();
    } else {
      return start_download();
    }
    break;
  case mode::computing:
    if (lead != own_branch()) return start_download();
    break;
  case mode::averaging:
    // Other peers went ahead without this one: the group will not form.
    if (!has_group()) return;
    if (lead != own_branch())
      cancel_group();
    else
      tell_group(expected(), samples_known());
    return;
  case mode::stepping:
  case mode::downloading:
  case mode::stopped:
    return;
  }
  if (now() < not_before_) {
    // The others' samples may be claims of peers that do not come. The peer computes what it needs
    // for a round without them.
    if (doubts_claims()) compute_next();
    return;
  }
  if (options_.epochs != 0 && state()->epoch >= options_.epochs) return enter(mode::stopped);
  if (samples_known() >= options_.target_batch) {
    // A peer without a reachability verdict would be a bad leader. The inquiry is short.
    if (!held().running() && may_lead()) start_round();
    return;
  }
  compute_next();
}

// -- computing ------------------------------------------------------------------------------------

void peer::compute_next() {
  if (held().running() || current_mode() != mode::computing || audit_next()) return;
  if (held().none_ready()) return request_samples();
  // A newcomer follows the others, and gives nothing to their rounds.
  if (on_probation()) return;
  auto wanted = next_job_samples();
  // The missing samples are being computed. The next records will show them.
  if (wanted == 0) {
    if (!idle_) announce();
    idle_ = true;
    return;
  }
  idle_ = false;
  auto job = take_samples(wanted);
  auto work = [pool = pool(), at = state(), sum = sum_, blocks = job.blocks,
               conduct = options_.conduct] {
    conduct->before_gradient(at->epoch);
    if (pool->work().is_size_only()) return;
    sum->values.resize(pool->work().value_count());
    const auto& learning = conduct->learns_by(pool->work(), at->epoch);
    for (const auto& block : blocks)
      sum->loss_sum += learning.accumulate(*at, block.data.bytes(), block.range.count, sum->values);
  };
  auto samples = job.samples;
  held().start(std::move(job));
  sum_->loss_sum = 0;
  compute(std::move(work), samples, [this] { gradient_done(); });
  request_samples();
  if (nearly_there()) announce();
}

/// True if the target is so near that each job is news. A peer that does not hear of a job would
/// compute superfluous samples.
bool peer::nearly_there() const {
  return missing_samples() <= 25 * to_seconds(options_.min_refresh) * swarm_speed();
}

void peer::gradient_done() {
  auto job = finished_job();
  if (!job) return decide();
  if (options_.averaging.guard)
    for (const auto& block : job->blocks) blocks_.push_back(block.range);
  auto ranges = job->ranges();
  here().observe(trained{state()->epoch, ranges, sum_->loss_sum});
  options_.conduct->count_samples(ranges, held().counted() == 0);
  job->samples = index_count(ranges);
  held().add_computed(ranges, job->samples);
  measure_speed(*job);
  here().probe(probes::training_step);
  decide();
  if (nearly_there()) announce();
}

// -- averaging ------------------------------------------------------------------------------------

/// The time for which the other peers' running jobs may delay them. Gathering times of earlier
/// rounds do not predict it.
duration peer::others_jobs() const {
  double longest = 0;
  for (const auto& one : expected()) {
    const auto speed =
        static_cast<double>(others().at(one.peer).what.millisamples_per_second) / 1000;
    if (speed > 0) longest = std::max(longest, static_cast<double>(options_.micro_batch) / speed);
  }
  return from_seconds(std::min(longest, to_seconds(options_.averaging.matchmaking_time))) +
         4 * options_.averaging.poll_interval;
}

void peer::start_round() {
  round_request request;
  request.epoch = state()->epoch;
  request.state = state()->id;
  request.state_root = pool()->root_of(state(), options_.fetch.chunk_bytes);
  request.weight = held().counted();
  request.expected = expected();
  request.known_samples = samples_known();
  request.max_wait = others_jobs();
  options_.conduct->ask_for_round(request);
  if (options_.averaging.guard) request.blocks = blocks_;
  contribution_.begin(*state(), sum_->values, held().counted(), request);
  held().begin_round();
  count_attempt();
  publish();
  enter(mode::averaging);
  // A smaller group would step on a branch that the others do not follow.
  if (follower())
    request.takers_needed = static_cast<std::uint32_t>(follower()->members_needed(others()));
  start_group(std::move(request), options_.averaging);
}

void peer::round_ended(const round_result& result) {
  if (current_mode() != mode::averaging) return;
  if (result.succeeded()) {
    contribution_.averaged(result);
    send_commit(result);
    enter(mode::stepping);
    return start_step(result);
  }
  // The gradients stay for the next attempt.
  held().retry_round();
  enter(mode::computing);
  publish();
  look_up_progress();
  try_again_in(pause_after_failure());
}

duration peer::pause_after_failure() {
  auto pause = options_.min_refresh *
               (1 + static_cast<std::int64_t>(std::min<std::uint64_t>(round_attempts_, 8)));
  pause += duration{static_cast<std::int64_t>(
      backoff().below(static_cast<std::uint64_t>(options_.min_refresh.count()) + 1))};
  not_before_ = now() + pause;
  return pause;
}

void peer::start_step(const round_result& result) {
  step_group_ = result.group;
  step_parts_ = parts_of(result);
  std::uint64_t weight = 0;
  if (!step_parts_.empty())
    weight = samples_of(step_parts_, result.members);
  else
    for (const auto& part : result.parts) weight = std::max(weight, part.weight);
  step_taken_ = step_by(result);
  SHOAL_CHECK(step_taken_, "a round that has succeeded has a certificate");
  note_round(result);
  make_step(result.values, step_taken_->after.state, weight);
}

void peer::make_step(const payload& gradient, const state_id& after, std::uint64_t weight) {
  step_gradient_ = gradient;
  next_state_ = std::make_shared<state_ptr>();
  auto work = [pool = pool(), before = state(), gradient, after, weight, out = next_state_,
               conduct = options_.conduct, chunk = options_.fetch.chunk_bytes] {
    conduct->before_step(before->epoch);
    *out = pool->step(before, gradient, after, weight);
    pool->root_of(*out, chunk); // the next round needs it
  };
  compute(std::move(work), 0, [this, made = next_state_] {
    pool()->offer(*made);
    step_done();
  });
}

taken_step peer::made_step(const state_ptr& next) {
  return {next->epoch, next->id, next->samples,
          pool()->gradient_between(state(), next, std::exchange(step_gradient_, {})),
          std::exchange(step_parts_, {})};
}

void peer::step_done() {
  if (current_mode() != mode::stepping || !next_state_) return;
  auto before = parent_ = state()->id;
  const auto next = *std::exchange(next_state_, nullptr);
  keep_served(state(), made_step(next));
  set_state(next);
  stepped_by(std::exchange(step_taken_, nullptr));
  if (options_.conduct->reuses_gradients()) {
    held().retry_round();
  } else {
    held().end_round();
    held().uncount(held().counted());
    peer::discard_work();
  }
  round_attempts_ = 0;
  stepped_ = now();
  here().observe(stepped{state()->epoch, before, state()->id, step_group_});
  checkpoint_if_due();
  enter(mode::computing);
  // Starts the next job first, so that the published record promises its samples.
  decide();
  publish();
  look_up_progress();
}

} // namespace shoal::actors
