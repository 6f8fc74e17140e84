#include "actors/training/delayed_peer.hpp"

#include <utility>

#include "actors/averaging/group.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/digest.hpp"

namespace shoal::actors {

void delayed_peer::on_exit() {
  given_.reset();
  ahead_.reset();
  peer::on_exit();
}

void delayed_peer::forget_gradients() {
  peer::forget_gradients();
  given_.reset();
  ahead_.reset();
  fetched_ = 0;
}

void delayed_peer::describe(progress& mine) const {
  mine.contribution = given_ ? given_->samples : 0;
  mine.part = passes()                                 ? round_part::passes
              : ahead_ || (next_state_ && fetched_ == 0) ? round_part::has_result
              : given_                         ? round_part::takes_part
                                                      : round_part::came_late;
}

branch delayed_peer::empty_step() const {
  hasher id;
  id.add(std::string_view{"no gradient"}).add(state_->id.high).add(state_->id.low);
  return {state_->epoch + 1, state_->samples, state_id::from(id.finish())};
}

state_ptr delayed_peer::make_empty_step() const {
  const auto where = empty_step();
  auto next = *state_;
  next.epoch = where.epoch;
  next.id = where.state;
  return pool_->intern(std::make_shared<const model_state>(std::move(next)));
}

bool delayed_peer::passes() const { return ahead_ && ahead_->state->id == empty_step().state; }

void delayed_peer::give_back_given() {
  if (shard_ && !in_round_.empty()) send(shard_, samples_returned{here().id(), in_round_});
  in_round_.clear();
  given_.reset();
}

void delayed_peer::decide() {
  if (draining_) return leave();
  if (!heard_) return;
  const auto lead = leading();
  switch (mode_) {
    case mode::joining:
      if (!(lead == own_branch()) && !(lead == empty_step())) return start_download();
      enter(mode::computing);
      publish();
      break;
    case mode::computing: break;
    default: return;
  }
  if (options_.epochs != 0 && state_->epoch >= options_.epochs) {
    give_back_gradients();
    return enter(mode::stopped);
  }
  const bool behind = !(lead == own_branch());
  if (!ahead_ && !group_ && !next_state_) {
    const bool others_began = behind && lead == empty_step();
    // Nobody who is left has given anything to a round on this state: it is the first one, or those who had are gone. (Who went over with the
    // others before it had a sample gave nothing either.)
    const bool gave = given_ && given_->samples > 0;
    const bool nobody_began =
        !behind && samples_known() >= options_.target_batch && !gave && !others_.round_under_way(state_->epoch, state_->id);
    // They go on without a round before they have heard that we gave something, and nobody else did.
    const bool others_pass = !behind && others_.passed(state_->epoch, state_->id) && !others_.round_under_way(state_->epoch, state_->id);
    if (others_began || nobody_began || others_pass) {
      give_back_given();
      ahead_ = next_step{make_empty_step(), {}, 0};
    }
    // Who gave to it and are left may be too few for a group, or nobody of them may be reached: who came late makes them one, with nothing.
    const auto who = others_.contributors_to(state_->epoch, state_->id);
    const bool needs_us = who.count < options_.averaging.min_group_size || (who.reachable == 0 && reached() != reached_by::nobody);
    if (!behind && !ahead_ && !given_ && who.count > 0 && needs_us) {
      given_ = batch{std::make_shared<const gradient_sum>(), 0};
      publish();
    }
  }
  const bool others_crossed = behind && ahead_ && (lead == branch_of(*ahead_->state) || lead.epoch > ahead_->state->epoch);
  if (behind && !others_crossed) {
    if (group_)
      send(group_, tick{group_actor::cancel, 0});   // it may be too far to be cancelled, and lead there
    else if (!next_state_ && !fetching_aside_)
      return start_download();
  } else if (group_) {
    send(group_, expected_now{expected(), contributions_known()});
  }
  const bool full = others_crossed || samples_known() >= options_.target_batch;
  if (full && !running_ && ahead_) return cross();
  if (!ahead_ && !next_state_ && !behind && !group_ && !fetching_aside_ && now() >= not_before_) {
    if (!others_.peers_through(state_->epoch, state_->id).empty())
      fetch_step();   // too late for that round
    else if (given_ && (reach_.settled() || others_.entries().empty()))
      average();
  }
  wait(full && !ahead_);
  // When the others have gone over already, and our step is being made, a job now would keep us from following them until it is over.
  const bool about_to_cross = behind && next_state_;
  if (!waiting_ && !about_to_cross && !(options_.overlap == overlap::update && group_)) compute_next();
}

std::uint64_t delayed_peer::contributions_known() const {
  return (given_ ? given_->samples : 0) + others_.contributions_to(state_->epoch, state_->id, parent_);
}

void delayed_peer::wait(bool for_round) {
  if (std::exchange(waiting_, for_round) == for_round) return;
  here().observe(phase_changed{for_round ? peer_phase::averaging : peer_phase::computing, state_->epoch, state_->id});
}

// -- the round beside it --------------------------------------------------------------------------

void delayed_peer::average() {
  round_request request;
  request.epoch = state_->epoch;
  request.state = state_->id;
  request.weight = given_->samples;
  request.expected = expected();
  request.known_samples = contributions_known();
  request.patience = others_jobs();
  gives_.begin(*state_, given_->sum->values, given_->samples, request);
  ++round_attempts_;
  start_group(std::move(request), options_.averaging);
}

void delayed_peer::on_report(const round_result& result) {
  if (result.succeeded()) {
    gives_.averaged(result);
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
  if (ahead_->fetched == 0) here().observe(step_made{state_->id, next->id, step_group_});
  keep_served(state_, made_step(next));   // those who missed the round want it now
  if (given_) given_->sum.reset();   // its weight is still part of what the others know of this round
  in_round_.clear();
  publish();
  decide();
}

void delayed_peer::step_fetched(std::optional<taken_step> step) {
  if (mode_ != mode::computing) return;
  if (!step || !follows_ours(*step)) {
    try_again_in(pause_after_failure());
    return look_up_progress();
  }
  give_back_given();   // it is not in that round, or the others know better
  step_group_ = {};
  fetched_ = step->gradient.size();
  make_step(step->gradient, step->after, step->samples - state_->samples);
}

// -- the next state -------------------------------------------------------------------------------

void delayed_peer::cross() {
  auto next = *std::exchange(ahead_, std::nullopt);
  parent_ = state_->id;
  state_ = std::move(next.state);
  given_ = batch{sum_, samples_};
  in_round_ = std::exchange(accumulated_, {});
  samples_ = 0;
  peer::forget_gradients();
  round_attempts_ = 0;
  stepped_ = now();
  if (next.fetched > 0)
    here().observe(adopted{state_->epoch, state_->id, next.fetched, true, true});
  else
    here().observe(stepped{state_->epoch, parent_, state_->id, next.group});
  checkpoint_if_due();
  wait(false);
  enter(mode::computing);
  decide();   // starts the round and the next job first: what is published says so
  publish();
  look_up_progress();
}

}  // namespace shoal::actors
