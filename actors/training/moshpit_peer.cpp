#include "actors/training/moshpit_peer.hpp"

#include <algorithm>

#include "actors/averaging/group.hpp"
#include "actors/data/observations.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/probes.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/interval_map.hpp"

namespace shoal::actors {

namespace {

/// Parameters, with the optimizer's state behind them if that is averaged, too.
payload values_of(const model_state& state, bool optimizer) {
  if (!optimizer || state.optimizer.empty()) return state.parameters;
  if (state.parameters.is_hollow()) return payload::hollow(state.bytes());
  const auto a = state.parameters.floats(), b = state.optimizer.floats();
  std::vector<float> out(a.begin(), a.end());
  out.insert(out.end(), b.begin(), b.end());
  return payload{std::move(out)};
}

/// to + (now - from), the delta rule; `to` itself where nothing has moved meanwhile.
payload shifted(const payload& now, const payload& from, payload to) {
  if (now.is_hollow() || now.empty() || now.bytes().data() == from.bytes().data()) return to;
  std::vector<float> out(now.floats().begin(), now.floats().end());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = to.floats()[i] + (out[i] - from.floats()[i]);
  return payload{std::move(out)};
}

}  // namespace

moshpit_peer::moshpit_peer(caf::actor_config& config, host& on, peer_config options, std::shared_ptr<state_pool> pool, caf::actor dht)
    : volunteer(config, on, std::move(options), std::move(pool), std::move(dht)),
      draws_(on.random_stream("moshpit.place")),
      coordinates_(options_.grid.dimensions - 1),
      averaged_(pool_->initial()) {
  mixed_ = averaged_->epoch;
  draw_place();
}

void moshpit_peer::on_exit() {
  averaged_.reset();
  contributed_.reset();
  average_.reset();
  next_.reset();
  volunteer::on_exit();
}

state_id moshpit_peer::meeting() const {
  hasher name;
  name.add(std::string_view{"moshpit"}).add(state_->epoch);
  for (auto digit : coordinates_) name.add(std::uint64_t{digit});
  return state_id::from(name.finish());
}

std::uint32_t moshpit_peer::any_digit() { return static_cast<std::uint32_t>(draws_.below(options_.grid.side)); }

void moshpit_peer::draw_place() {
  for (auto& digit : coordinates_) digit = any_digit();
}

void moshpit_peer::move_to(std::uint32_t digit) {
  if (coordinates_.empty()) return;
  std::rotate(coordinates_.begin(), coordinates_.begin() + 1, coordinates_.end());
  coordinates_.back() = digit % options_.grid.side;
}

double moshpit_peer::missing_samples() const {
  const auto about = static_cast<double>(1 + others_.peers_near(state_->epoch));
  const auto known = static_cast<double>(promised() + others_.samples_at(state_->epoch));
  const auto wanted = options_.local_batch ? static_cast<double>(options_.target_batch)
                                           : static_cast<double>(options_.local_steps * options_.micro_batch) * about;
  return wanted - known;
}

/// Cut off, ahead, or alone in its line again and again: it goes no further away from the others than this, and only looks for somebody to average with.
bool moshpit_peer::exhausted() const {
  const auto most = (options_.local_batch ? options_.target_batch / options_.micro_batch : options_.local_steps) * (1 + options_.max_staleness);
  return !lone() && steps_ >= most && swarm_epoch() <= state_->epoch;
}

bool moshpit_peer::round_due() const {
  const auto swarm = swarm_epoch();
  return swarm >= state_->epoch && (missing_samples() <= 0 || swarm > state_->epoch || exhausted()) && (reach_.settled() || others_.entries().empty());
}

void moshpit_peer::decide() {
  if (draining_) return leave();
  if (!heard_) return;
  switch (mode_) {
    case mode::joining:
      if (swarm_epoch() > state_->epoch) return start_download();
      enter(mode::computing);
      publish();
      break;
    case mode::computing:
      if (stale() && !average_ && !donors().empty()) {
        if (!group_) return start_download();
        send(group_, tick{group_actor::cancel, 0});
      }
      break;
    default: return;
  }
  if (group_) {
    auto others = expected();
    if (others.empty() && swarm_epoch() > state_->epoch)   // nobody will come here any more
      send(group_, tick{group_actor::cancel, 0});
    else
      send(group_, expected_now{std::move(others), 0});
  } else if (!average_) {
    if (options_.epochs != 0 && state_->epoch >= options_.epochs) return enter(mode::stopped);
    if (round_due()) start_round();
  }
  step();
}

// -- local steps ----------------------------------------------------------------------------------

void moshpit_peer::step() {
  if (running_ || applying_ || mode_ != mode::computing) return;
  if (exhausted()) return;
  const auto wanted = std::min<std::uint64_t>(options_.micro_batch, options_.prefetch_samples);
  if (samples_here() < wanted) return request_samples();
  auto job = take_samples(wanted);
  next_ = std::make_shared<job_result>();
  auto work = [pool = pool_, at = state_, blocks = job.blocks, count = job.samples, out = next_] {
    const auto& work = pool->work();
    payload mean = payload::hollow(4 * work.value_count());
    if (!work.hollow()) {
      std::vector<double> sum(work.value_count());
      for (const auto& block : blocks) out->loss_sum += work.accumulate(*at, block.data.bytes(), block.range.count, sum);
      mean = mean_gradient(sum, count);
    }
    auto next = work.step(*at, mean);
    next.samples = at->samples + count;
    out->state = std::make_shared<const model_state>(std::move(next));
  };
  running_ = std::move(job);
  compute(std::move(work), running_->samples, local_step, true);
  request_samples();
  announce();
}

void moshpit_peer::step_done() {
  auto job = finished_job();
  auto result = std::exchange(next_, nullptr);
  if (!job) {   // of a state that we gave up while it ran; the average is of the one that we have now
    if (average_) apply();
    return decide();
  }
  auto next = *result->state;
  next.epoch = state_->epoch;   // a round may have ended meanwhile
  next.id = state_->id;
  state_ = std::make_shared<const model_state>(std::move(next));
  auto ranges = job->ranges();
  here().observe(trained{state_->epoch, ranges, result->loss_sum});
  options_.conduct->count_samples(ranges, accumulated_.empty());
  samples_ += job->samples;
  ++steps_;
  for (const auto& range : ranges) append_range(accumulated_, range);
  measure_speed(*job);
  here().probe(probes::training_step);
  if (average_) apply();
  decide();
  announce();
}

void moshpit_peer::forget_gradients() {
  if (averaged_) state_ = averaged_;   // its samples are given back: they must not be in it
  average_.reset();
  contributed_.reset();
  samples_before_ = 0;
}

// -- rounds ---------------------------------------------------------------------------------------

std::vector<expected_peer> moshpit_peer::expected() const {
  std::vector<expected_peer> out;
  const auto where = meeting();
  for (const auto& [id, entry] : others_.entries())
    if (entry.what.epoch == state_->epoch && entry.what.state == where && entry.what.arriving == 0) out.push_back({id, entry.address});
  return out;
}

void moshpit_peer::start_round() {
  round_request request;
  request.epoch = state_->epoch;
  request.state = meeting();
  request.weight = 1;
  request.codecs = options_.codecs.first;
  request.must_be_finite = true;
  request.expected = expected();
  // The swarm has gone on, and left nobody here to wait for.
  if (request.expected.empty() && swarm_epoch() > state_->epoch) return skip_round();
  request.values = values_of(*state_, options_.average_optimizer);
  in_round_ = std::exchange(accumulated_, {});
  contributed_ = state_;
  samples_before_ = samples_;
  here().observe(phase_changed{peer_phase::averaging, state_->epoch, state_->id});
  publish();
  auto how = options_.averaging;
  if (!lone()) how.min_group_size = std::max(2u, how.min_group_size);
  start_group(std::move(request), how);
}

void moshpit_peer::on_report(const round_result& result) {
  if (!contributed_) return;   // we have given back what was in it
  if (result.succeeded()) {
    send_commit(result);
    note_round(result);
    in_round_.clear();
    steps_ = 0;
    // One offset for the whole group: its members go apart, and the groups that they go to fill evenly.
    average_ = average{std::exchange(contributed_, nullptr), result.values, result.group,
                       static_cast<std::uint32_t>((result.member + result.group.low) % options_.grid.side)};
    if (!running_) apply();
    return;
  }
  if (result.reason == reason::not_finite) {   // we have gone astray: what was averaged last is what all others took
    steps_ = 0;
    give_back_gradients();
    return skip_round();
  }
  // Its steps are in our parameters, and in the next round.
  contributed_.reset();
  auto kept = std::exchange(in_round_, {});
  for (const auto& range : accumulated_) append_range(kept, range);
  accumulated_ = std::move(kept);
  if (result.reason == reason::cancelled && (draining_ || swarm_epoch() == state_->epoch)) return decide();
  if (!exhausted()) return skip_round();
  // If everybody is, nobody computes what would make the next round due: they look for each other in this one, elsewhere.
  move_to(any_digit());
  samples_before_ = 0;
  here().observe(phase_changed{peer_phase::computing, state_->epoch, state_->id});
  publish();
  look_up_progress();
  try_again_in(options_.min_refresh);
}

void moshpit_peer::skip_round() {
  auto next = std::make_shared<model_state>(*state_);
  ++next->epoch;
  auto shared = std::make_shared<model_state>(*averaged_);
  ++shared->epoch;
  state_ = std::move(next);
  averaged_ = std::move(shared);
  move_to(any_digit());
  round_over();
}

// Others have committed them, or others have them now. They stay in our parameters, but are not ours to account for any more.
void moshpit_peer::lost(const std::vector<sample_range>& ranges) {
  interval_set gone;
  for (const auto& range : ranges) gone.insert(range.first, range.end());
  std::vector<sample_range> repeated;
  for (auto* held : {&accumulated_, &in_round_})
    for (const auto& range : std::exchange(*held, {})) {
      for (const auto& piece : gone.pieces(range.first, range.end())) append_range(repeated, piece.first, piece.end);
      for (const auto& piece : gone.missing(range.first, range.end())) append_range(*held, piece.first, piece.end);
    }
  if (!repeated.empty()) here().observe(samples_reported{"repeated: in the parameters of a peer that lost their lease", here().id(), state_->epoch, std::move(repeated)});
}

void moshpit_peer::apply() {
  if (applying_) return;
  applying_ = true;
  hasher id;
  id.add(averaged_->id.high).add(averaged_->id.low).add(average_->group.high).add(average_->group.low);
  next_ = std::make_shared<job_result>();
  auto work = [pool = pool_, now = state_, what = *average_, after = state_id::from(id.finish()), out = next_] {
    auto next = *now;
    const auto split = now->parameters.size();
    next.parameters = shifted(now->parameters, what.from->parameters, what.values.slice(0, split));
    // As it was averaged: a difference of second moments on top could make them negative.
    if (what.values.size() > split) next.optimizer = pool->work().mended(what.values.slice(split, what.values.size() - split));
    ++next.epoch;
    next.id = after;
    out->state = std::make_shared<const model_state>(std::move(next));
  };
  compute(std::move(work), 0, apply_average);
}

void moshpit_peer::applied() {
  applying_ = false;
  auto result = std::exchange(next_, nullptr);
  if (!average_) return decide();   // given up meanwhile
  const auto what = *std::exchange(average_, std::nullopt);
  const auto before = averaged_->id;
  keep_served(averaged_);
  averaged_ = state_ = std::move(result->state);
  pool_->offer(state_);
  mixed_ = state_->epoch;
  move_to(what.digit);
  here().observe(stepped{state_->epoch, before, state_->id, what.group});
  checkpoint_if_due();
  round_over();
}

void moshpit_peer::round_over() {
  samples_ -= std::min(samples_, samples_before_);
  samples_before_ = 0;
  here().observe(phase_changed{peer_phase::computing, state_->epoch, state_->id});
  decide();
  publish();
  look_up_progress();
}

// -- out of sync ----------------------------------------------------------------------------------

bool moshpit_peer::wants(const model_state& offered) const {
  return offered.epoch > state_->epoch || (offered.epoch == state_->epoch && stale());
}

void moshpit_peer::adopted_state() {
  averaged_ = state_;
  mixed_ = state_->epoch;
  draw_place();
}

}  // namespace shoal::actors
