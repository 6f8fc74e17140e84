#include "actors/training/auxiliary_peer.hpp"

#include <utility>

namespace shoal::actors {

auxiliary_peer::auxiliary_peer(caf::actor_config& config, host& on, peer_config options,
                               overlap_options swarm, std::shared_ptr<state_pool> pool,
                               caf::actor dht)
    : training_peer(config, on, std::move(options),
                    {.streams_samples = false, .serves_state = false}, std::move(pool),
                    std::move(dht)),
      swarm_(swarm), contribution_(this->pool()->shared_work(), options_.codecs) {}

void auxiliary_peer::on_exit() {
  contribution_ = {nullptr, {}};
  training_peer::on_exit();
}

double auxiliary_peer::missing_samples() const {
  return static_cast<double>(options_.target_batch) -
         others().samples_expected_on(leading(), now(), moved_);
}

void auxiliary_peer::describe(progress& mine) const {
  mine.samples = mine.millisamples_per_second = 0;
  mine.arriving = 1;
}

void auxiliary_peer::decide() {
  if (draining()) return leave();
  if (!heard() || current_mode() == mode::stopped) return;
  const auto lead = leading();
  const bool first = current_mode() == mode::joining;
  if (first || !(lead == followed_)) {
    before_ = std::exchange(followed_, lead).state;
    moved_ = now();
    if (first) enter_silently(mode::computing);
    publish();
  }
  if (current_mode() == mode::averaging) {
    if (!has_group()) return;
    if (!(lead == averaged_))
      cancel_group();
    else
      tell_group(expected(), round_samples());
    return;
  }
  // Records still show the samples of a round for a while after the round.
  if (!round_due() || (lead == averaged_ && now() < not_before_)) return;
  if (!may_lead()) return;
  start_round();
}

bool auxiliary_peer::round_due() const {
  if (swarm_.overlap != overlap::none)
    return others().contributors_to(followed_.epoch, followed_.state).count > 0;
  return round_samples() >= options_.target_batch;
}

std::uint64_t auxiliary_peer::round_samples() const {
  return swarm_.overlap == overlap::none
             ? others().samples_on(followed_)
             : others().contributions_to(followed_.epoch, followed_.state, before_);
}

void auxiliary_peer::start_round() {
  averaged_ = followed_;
  round_request request;
  request.epoch = followed_.epoch;
  request.state = followed_.state;
  request.takes = false;
  request.expected = expected();
  request.known_samples = round_samples();
  request.takers_needed = others().takers_needed(followed_.epoch, followed_.state, before_, 0);
  contribution_.begin(*state(), {}, 0, request);
  enter_silently(mode::averaging);
  start_group(std::move(request), options_.averaging);
}

void auxiliary_peer::round_ended(const round_result& result) {
  if (current_mode() != mode::averaging) return;
  enter_silently(mode::computing);
  // After a successful round the branch moves on. If it does not, the round succeeded only for
  // members that are gone.
  auto pause = options_.min_refresh +
               duration{static_cast<std::int64_t>(
                   backoff().below(static_cast<std::uint64_t>(options_.min_refresh.count()) + 1))};
  if (result.succeeded()) pause += options_.averaging.matchmaking_time;
  not_before_ = now() + pause;
  try_again_in(pause);
  look_up_progress();
}

} // namespace shoal::actors
