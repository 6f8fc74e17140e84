#include "actors/training/delayed_peer.hpp"

#include "actors/training/observations.hpp"
#include "kernels/base/digest.hpp"

#include <utility>

namespace shoal::actors {

delayed_peer::delayed_peer(caf::actor_config& config, host& on, peer_config options,
                           overlap_options how, std::shared_ptr<state_pool> pool, caf::actor dht)
    : peer(config, on, std::move(options),
           {.repeats_steps = true,
            .overlaps_rounds = how.overlap != overlap::none,
            .most_weight = 2 * most_claimed(options)},
           std::move(pool), std::move(dht)),
      how_(how) {}

void delayed_peer::on_exit() {
  given_.reset();
  ahead_.reset();
  peer::on_exit();
}

void delayed_peer::discard_work() {
  peer::discard_work();
  given_.reset();
  ahead_.reset();
  fetched_ = 0;
  failed_fetches_ = 0;
  waits_since_ = now();
}

void delayed_peer::describe(progress& mine) const {
  mine.contribution = given_ ? given_->samples : 0;
  mine.part = passes()                                   ? round_part::passes
              : ahead_ || (next_state_ && fetched_ == 0) ? round_part::has_result
              : given_                                   ? round_part::takes_part
                                                         : round_part::came_late;
}

branch delayed_peer::empty_step() const {
  hasher id;
  id.add(std::string_view{"no gradient"}).add(state()->id.high).add(state()->id.low);
  return {state()->epoch + 1, state()->samples, state_id::from(id.finish())};
}

state_ptr delayed_peer::make_empty_step() const {
  const auto where = empty_step();
  auto next = *state();
  next.epoch = where.epoch;
  next.id = where.state;
  return pool()->intern(std::make_shared<const model_state>(std::move(next)));
}

bool delayed_peer::passes() const {
  return ahead_ && ahead_->state->id == empty_step().state;
}

void delayed_peer::give_back_given() {
  give_back_contribution();
  given_.reset();
}

std::uint64_t delayed_peer::contributions_known() const {
  return (given_ ? given_->samples : 0) +
         others().contributions_to(state()->epoch, state()->id, parent_);
}

// -- decisions ------------------------------------------------------------------------------------

void delayed_peer::decide() {
  if (draining()) return leave();
  if (!heard()) return;
  const auto lead = leading();
  if (!takes_part(lead)) return;
  if (options_.epochs != 0 && state()->epoch >= options_.epochs) {
    give_back_work();
    return enter(mode::stopped);
  }
  if (round_is_open()) {
    if (round_is_empty(lead)) {
      give_back_given();
      ahead_ = next_step{make_empty_step(), {}, 0};
    } else if (!is_behind(lead) && must_help_out()) {
      give_computed();
      publish();
    } else if (!is_behind(lead) && must_make_up_group()) {
      given_ = batch{std::make_shared<const gradient_sum>(), 0};
      publish();
    }
  }
  const bool others_crossed = have_crossed(lead);
  if (is_behind(lead) && !others_crossed) {
    if (has_group())
      // The round may be too far advanced to be cancelled, and then leads to that branch.
      cancel_group();
    else if (!next_state_ && !fetches_step())
      return start_download();
  } else if (has_group()) {
    tell_group(expected(), contributions_known());
  }
  const bool full = others_crossed || samples_known() >= options_.target_batch;
  if (full && !held().running() && ahead_) return cross();
  if (needs_result(lead)) find_result();
  wait(full && !ahead_);
  if (may_compute(lead)) compute_next();
}

bool delayed_peer::takes_part(const branch& lead) {
  if (current_mode() == mode::computing) return true;
  if (current_mode() != mode::joining) return false;
  if (is_behind(lead) && !(lead == empty_step())) {
    start_download();
    return false;
  }
  enter(mode::computing);
  publish();
  return true;
}

bool delayed_peer::round_is_open() const {
  return !ahead_ && !has_group() && !next_state_;
}

bool delayed_peer::round_is_empty(const branch& lead) const {
  if (is_behind(lead)) return lead == empty_step();
  if (others().round_under_way(state()->epoch, state()->id)) return false;
  // The others went on without a round before they heard of this peer's contribution, and no other
  // peer contributed.
  if (others().passed(state()->epoch, state()->id)) return true;
  // Peers that contributed are gone, or this is the first round. (A peer that crossed over before
  // it had a sample contributed nothing either.)
  const bool gave = given_ && given_->samples > 0;
  return !gave && samples_known() >= options_.target_batch;
}

bool delayed_peer::must_make_up_group() const {
  if (given_) return false;
  const auto who = others().contributors_to(state()->epoch, state()->id);
  if (who.count == 0) return false;
  const bool nobody_leads = who.reachable == 0 && reached() != reached_by::nobody;
  return who.count < options_.averaging.min_group_size || nobody_leads;
}

bool delayed_peer::must_help_out() const {
  const bool gave = given_ && (given_->samples > 0 || held().counted() == 0);
  const auto& how = options_.averaging;
  return waiting_ && !gave && !held().running() &&
         now() - waits_since_ >= how.matchmaking_time + how.round_timeout &&
         (doubts_results() || others().peers_through(state()->epoch, state()->id).empty());
}

bool delayed_peer::have_crossed(const branch& lead) const {
  return is_behind(lead) && ahead_ &&
         (lead == branch_of(*ahead_->state) || lead.epoch > ahead_->state->epoch);
}

bool delayed_peer::needs_result(const branch& lead) const {
  return round_is_open() && !is_behind(lead) && !fetches_step() && now() >= not_before_;
}

void delayed_peer::find_result() {
  const bool may_average = given_ && may_lead();
  if (may_average && doubts_results()) {
    failed_fetches_ = 0;
    average();
  } else if (!others().peers_through(state()->epoch, state()->id).empty()) {
    // The peer is too late for that round.
    fetch_step([this](std::optional<taken_step> step) { step_fetched(std::move(step)); });
  } else if (may_average) {
    average();
  }
}

bool delayed_peer::may_compute(const branch& lead) const {
  // The others have crossed over and this peer makes its step. A new job would delay its crossing
  // until the job ends.
  const bool about_to_cross = is_behind(lead) && next_state_;
  const bool round_comes_first = how_.overlap == overlap::update && has_group();
  return !waiting_ && !about_to_cross && !round_comes_first;
}

void delayed_peer::wait(bool for_round) {
  if (std::exchange(waiting_, for_round) == for_round) return;
  waits_since_ = now();
  here().observe(phase_changed{for_round ? peer_phase::averaging : peer_phase::computing,
                               state()->epoch, state()->id});
}

// -- the round beside it --------------------------------------------------------------------------

void delayed_peer::average() {
  round_request request;
  request.epoch = state()->epoch;
  request.state = state()->id;
  request.weight = given_->samples;
  request.expected = expected();
  request.known_samples = contributions_known();
  request.max_wait = others_jobs();
  request.takers_needed = others().takers_needed(state()->epoch, state()->id, parent_, 1);
  contribution_.begin(*state(), given_->sum->values, given_->samples, request);
  count_attempt();
  start_group(std::move(request), options_.averaging);
}

void delayed_peer::round_ended(const round_result& result) {
  if (result.succeeded()) {
    contribution_.averaged(result);
    send_commit(result);
    start_step(result);
    return decide();
  }
  const auto pause = pause_after_failure();
  publish();
  look_up_progress();
  try_again_in(pause);
}

void delayed_peer::step_done() {
  if (!next_state_) return;
  const auto next = *std::exchange(next_state_, nullptr);
  ahead_ = next_step{next, step_group_, std::exchange(fetched_, 0)};
  if (ahead_->fetched == 0) here().observe(step_made{state()->id, next->id, step_group_});
  // Peers that missed the round need the step now.
  keep_served(state(), made_step(next));
  // The weight of this batch still counts in what the others know of this round.
  if (given_) given_->sum.reset();
  held().end_round();
  publish();
  decide();
}

void delayed_peer::step_fetched(std::optional<taken_step> step) {
  if (current_mode() != mode::computing) return;
  if (!step || !follows_state(*step)) {
    ++failed_fetches_;
    try_again_in(pause_after_failure());
    return look_up_progress();
  }
  failed_fetches_ = 0;
  // The samples are not in that round, or the shard knows that they are.
  give_back_given();
  step_group_ = {};
  fetched_ = step->gradient.size();
  make_step(step->gradient, step->after, step->samples - state()->samples);
}

// -- the next state -------------------------------------------------------------------------------

void delayed_peer::give_computed() {
  given_ = batch{sum_, held().counted()};
  held().begin_round();
  held().uncount(held().counted());
  peer::discard_work();
}

void delayed_peer::cross() {
  auto next = *std::exchange(ahead_, std::nullopt);
  parent_ = state()->id;
  set_state(std::move(next.state));
  give_computed();
  round_attempts_ = 0;
  stepped_ = now();
  if (next.fetched > 0)
    here().observe(adopted{state()->epoch, state()->id, next.fetched, true, true});
  else
    here().observe(stepped{state()->epoch, parent_, state()->id, next.group});
  checkpoint_if_due();
  wait(false);
  enter(mode::computing);
  // Starts the round and the next job first, so that the published record includes them.
  decide();
  publish();
  look_up_progress();
}

} // namespace shoal::actors
