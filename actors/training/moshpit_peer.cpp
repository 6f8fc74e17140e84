#include "actors/training/moshpit_peer.hpp"

#include "actors/data/observations.hpp"
#include "actors/probes.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/digest.hpp"

#include <algorithm>

namespace shoal::actors {

moshpit_peer::moshpit_peer(caf::actor_config& config, host& on, peer_config options,
                           moshpit_options how, std::shared_ptr<state_pool> pool, caf::actor dht)
    : moshpit_peer(config, on, std::move(options), how,
                   std::make_shared<delta_rule>(how.average_optimizer), 0, std::move(pool),
                   std::move(dht)) {}

moshpit_peer::moshpit_peer(caf::actor_config& config, host& on, peer_config options,
                           moshpit_options how, std::shared_ptr<const outer_rule> rule,
                           std::uint64_t method_state_bytes, std::shared_ptr<state_pool> pool,
                           caf::actor dht)
    : training_peer(
          config, on, options,
          {.one_branch = false,
           .steps_locally = true,
           .method_state_bytes = method_state_bytes,
           .untimed_rounds = rule->takes_no_device_time(),
           // An exhausted peer has this many.
           .most_samples = (1 + how.max_staleness) *
                           std::max(options.target_batch, how.local_steps * options.micro_batch),
           .most_weight = 1},
          std::move(pool), std::move(dht)),
      how_(how), rule_(std::move(rule)), place_(how_.grid, on.random_stream("moshpit.place")),
      averaged_(this->pool()->initial()) {
  mixed_ = averaged_->epoch;
}

void moshpit_peer::on_exit() {
  averaged_.reset();
  contributed_.reset();
  average_.reset();
  next_.reset();
  training_peer::on_exit();
}

double moshpit_peer::missing_samples() const {
  const auto about = static_cast<double>(1 + others().peers_near(state()->epoch));
  const auto known = static_cast<double>(promised() + others().samples_at(state()->epoch));
  const auto wanted = how_.local_batch
                          ? static_cast<double>(options_.target_batch)
                          : static_cast<double>(how_.local_steps * options_.micro_batch) * about;
  return wanted - known;
}

/// True if a peer that is cut off, ahead, or alone in its group has made too many local steps. It
/// then only looks for peers to average with, so that it stays close to the swarm.
bool moshpit_peer::exhausted() const {
  const auto most =
      (how_.local_batch ? options_.target_batch / options_.micro_batch : how_.local_steps) *
      (1 + how_.max_staleness);
  return !lone() && steps_ >= most && swarm_epoch() <= state()->epoch;
}

bool moshpit_peer::round_due() const {
  const auto swarm = swarm_epoch();
  return swarm >= state()->epoch &&
         (missing_samples() <= 0 || swarm > state()->epoch || exhausted()) && may_lead();
}

void moshpit_peer::decide() {
  if (draining()) return leave();
  if (!heard()) return;
  switch (current_mode()) {
  case mode::joining:
    if (swarm_epoch() > state()->epoch) return start_download();
    enter(mode::computing);
    publish();
    break;
  case mode::computing:
    if (stale() && !average_ && !donors().empty()) {
      if (!has_group()) return start_download();
      cancel_group();
    }
    break;
  default:
    return;
  }
  if (has_group()) {
    auto others = expected();
    // No other peer will come to this group any more.
    if (others.empty() && swarm_epoch() > state()->epoch)
      cancel_group();
    else
      tell_group(std::move(others), 0);
  } else if (!average_) {
    if (options_.epochs != 0 && state()->epoch >= options_.epochs) return enter(mode::stopped);
    if (round_due()) start_round();
  }
  step();
}

// -- local steps ----------------------------------------------------------------------------------

void moshpit_peer::step() {
  if (held().running() || applying_ || current_mode() != mode::computing) return;
  if (exhausted()) return;
  const auto wanted = std::min<std::uint64_t>(options_.micro_batch, options_.prefetch_samples);
  if (held().ready() < wanted) return request_samples();
  auto job = take_samples(wanted);
  next_ = std::make_shared<job_result>();
  auto work = [pool = pool(), at = state(), blocks = job.blocks, count = job.samples, out = next_,
               conduct = options_.conduct] {
    const auto& work = pool->work();
    const auto& learning = conduct->learns_by(work, at->epoch);
    payload mean = payload::size_only(4 * work.value_count());
    if (!work.is_size_only()) {
      std::vector<double> sum(work.value_count());
      for (const auto& block : blocks)
        out->loss_sum += learning.accumulate(*at, block.data.bytes(), block.range.count, sum);
      mean = mean_gradient(sum, count);
    }
    auto next = work.step(*at, mean);
    next.samples = at->samples + count;
    next.method_state = at->method_state;
    out->state = std::make_shared<const model_state>(std::move(next));
  };
  const auto count = job.samples;
  held().start(std::move(job));
  compute(
      std::move(work), count, [this] { step_done(); }, true);
  request_samples();
  announce();
}

void moshpit_peer::step_done() {
  auto job = finished_job();
  auto result = std::exchange(next_, nullptr);
  // The peer left that state while the job ran. The average is of its present state.
  if (!job) {
    if (average_) apply();
    return decide();
  }
  auto next = *result->state;
  next.epoch = state()->epoch; // a round may have ended meanwhile
  next.id = state()->id;
  set_state(std::make_shared<const model_state>(std::move(next)));
  auto ranges = job->ranges();
  here().observe(trained{state()->epoch, ranges, result->loss_sum});
  options_.conduct->count_samples(ranges, held().none_computed());
  held().add_computed(ranges, job->samples);
  ++steps_;
  measure_speed(*job);
  here().probe(probes::training_step);
  if (average_) apply();
  decide();
  announce();
}

void moshpit_peer::discard_work() {
  if (averaged_) set_state(averaged_); // without the samples that are given back
  average_.reset();
  contributed_.reset();
  samples_before_ = 0;
}

// -- rounds ---------------------------------------------------------------------------------------

std::vector<expected_peer> moshpit_peer::expected() const {
  std::vector<expected_peer> out;
  const auto where = place_.group(state()->epoch);
  for (const auto& [id, entry] : others().entries())
    if (entry.what.epoch == state()->epoch && entry.what.state == where && entry.what.arriving == 0)
      out.push_back({id, entry.address});
  return out;
}

void moshpit_peer::start_round() {
  round_request request;
  request.epoch = state()->epoch;
  request.state = place_.group(state()->epoch);
  request.weight = 1;
  request.codecs = options_.codecs.first;
  request.must_be_finite = true;
  request.expected = expected();
  // The swarm has moved on, and no other peer is left in this group.
  if (request.expected.empty() && swarm_epoch() > state()->epoch) return skip_round();
  request.values = rule_->contribution(*state(), *averaged_);
  held().begin_round();
  contributed_ = state();
  samples_before_ = held().counted();
  here().observe(phase_changed{peer_phase::averaging, state()->epoch, state()->id});
  publish();
  auto how = options_.averaging;
  if (!lone()) how.min_group_size = std::max(2u, how.min_group_size);
  start_group(std::move(request), how);
}

void moshpit_peer::round_ended(const round_result& result) {
  // The contribution has been given back.
  if (!contributed_) return;
  if (result.succeeded()) {
    send_commit(result);
    note_round(result);
    held().end_round();
    steps_ = 0;
    average_ = average{std::exchange(contributed_, nullptr), result.values, result.group,
                       place_.digit_after(result)};
    if (!held().running()) apply();
    return;
  }
  // The peer's own parameters are not finite. It goes back to the last average, which all others
  // took.
  if (result.reason == reason::not_finite) {
    steps_ = 0;
    give_back_work();
    return skip_round();
  }
  // The steps stay in the peer's parameters, and go into the next round.
  contributed_.reset();
  held().retry_round();
  if (result.reason == reason::cancelled && (draining() || swarm_epoch() == state()->epoch))
    return decide();
  if (!exhausted()) return skip_round();
  // If all peers are exhausted, none computes the samples that make the next round due. They look
  // for each other in this round, at other coordinates.
  place_.move_at_random();
  samples_before_ = 0;
  here().observe(phase_changed{peer_phase::computing, state()->epoch, state()->id});
  publish();
  look_up_progress();
  try_again_in(options_.min_refresh);
}

void moshpit_peer::skip_round() {
  auto next = std::make_shared<model_state>(*state());
  ++next->epoch;
  auto shared = std::make_shared<model_state>(*averaged_);
  ++shared->epoch;
  set_state(std::move(next));
  averaged_ = std::move(shared);
  place_.move_at_random();
  round_over();
}

void moshpit_peer::apply() {
  if (applying_) return;
  applying_ = true;
  hasher id;
  id.add(averaged_->id.high)
      .add(averaged_->id.low)
      .add(average_->group.high)
      .add(average_->group.low);
  next_ = std::make_shared<job_result>();
  auto work = [pool = pool(), rule = rule_, now = state(), shared = averaged_, what = *average_,
               after = state_id::from(id.finish()), out = next_] {
    auto next = rule->after({*now, *what.from, *shared, what.values}, pool->work());
    for (auto* each : {&next.shared, &next.own}) {
      each->epoch = now->epoch + 1;
      each->id = after;
    }
    out->shared = std::make_shared<const model_state>(std::move(next.shared));
    out->state = std::make_shared<const model_state>(std::move(next.own));
  };
  compute(std::move(work), 0, [this] { applied(); });
}

void moshpit_peer::applied() {
  applying_ = false;
  auto result = std::exchange(next_, nullptr);
  // The average was given up meanwhile.
  if (!average_) return decide();
  const auto what = *std::exchange(average_, std::nullopt);
  const auto before = averaged_->id;
  keep_served(averaged_);
  averaged_ = std::move(result->shared);
  set_state(std::move(result->state));
  pool()->offer(averaged_);
  mixed_ = state()->epoch;
  place_.move_to(what.digit);
  here().observe(stepped{state()->epoch, before, state()->id, what.group});
  checkpoint_if_due();
  round_over();
}

void moshpit_peer::round_over() {
  held().uncount(samples_before_);
  samples_before_ = 0;
  here().observe(phase_changed{peer_phase::computing, state()->epoch, state()->id});
  decide();
  publish();
  look_up_progress();
}

// -- out of sync ----------------------------------------------------------------------------------

bool moshpit_peer::prefers(const model_state& offered) const {
  return offered.epoch > state()->epoch || (offered.epoch == state()->epoch && stale());
}

void moshpit_peer::state_adopted() {
  averaged_ = state();
  mixed_ = state()->epoch;
  place_.draw();
}

} // namespace shoal::actors
