#include "actors/training/auxiliary_peer.hpp"

#include <utility>

#include "actors/averaging/group.hpp"

namespace shoal::actors {

auxiliary_peer::auxiliary_peer(caf::actor_config& config, host& on, peer_config options, std::shared_ptr<state_pool> pool,
                               caf::actor dht)
    : volunteer(config, on, std::move(options), std::move(pool), std::move(dht)), gives_(pool_->shared_work(), options_.codecs) {
  streams_ = has_state_ = false;
}

void auxiliary_peer::on_exit() {
  gives_ = {nullptr, {}};
  volunteer::on_exit();
}

double auxiliary_peer::missing_samples() const {
  return static_cast<double>(options_.target_batch) - others_.samples_expected_on(leading(), now(), moved_);
}

void auxiliary_peer::describe(progress& mine) const {
  mine.epoch = followed_.epoch;
  mine.state = followed_.state;
  mine.history = followed_.history;
  mine.samples = mine.millisamples_per_second = 0;
  mine.arriving = 1;
}

void auxiliary_peer::decide() {
  if (draining_) return leave();
  if (!heard_ || mode_ == mode::stopped) return;
  const auto lead = leading();
  const bool first = mode_ == mode::joining;
  if (first || !(lead == followed_)) {
    before_ = std::exchange(followed_, lead).state;
    moved_ = now();
    if (first) mode_ = mode::computing;   // no phase: it is not in sync with anything
    publish();
  }
  if (mode_ == mode::averaging) {
    if (!group_) return;
    if (!(lead == averaged_))
      send(group_, tick{group_actor::cancel, 0});
    else
      send(group_, expected_now{expected(), round_samples()});
    return;
  }
  // The records show the samples of a round for a while after it.
  if (!round_due() || (lead == averaged_ && now() < not_before_)) return;
  if (!reach_.settled() && !others_.entries().empty()) return;
  start_round();
}

bool auxiliary_peer::round_due() const {
  if (options_.overlap != overlap::none) return others_.contributors_to(followed_.epoch, followed_.state).count > 0;
  return round_samples() >= options_.target_batch;
}

std::uint64_t auxiliary_peer::round_samples() const {
  return options_.overlap == overlap::none ? others_.samples_on(followed_)
                                           : others_.contributions_to(followed_.epoch, followed_.state, before_);
}

void auxiliary_peer::start_round() {
  averaged_ = followed_;
  round_request request;
  request.epoch = followed_.epoch;
  request.state = followed_.state;
  request.takes = false;
  request.expected = expected();
  request.known_samples = round_samples();
  gives_.begin(*state_, {}, 0, request);
  mode_ = mode::averaging;
  start_group(std::move(request), options_.averaging);
}

void auxiliary_peer::on_report(const round_result& result) {
  if (mode_ != mode::averaging) return;
  mode_ = mode::computing;
  // After a round that ended well the branch moves on; if it does not, that round was its last members' alone.
  auto pause = options_.min_refresh + duration{static_cast<std::int64_t>(backoff_.below(static_cast<std::uint64_t>(options_.min_refresh.count()) + 1))};
  if (result.succeeded()) pause += options_.averaging.matchmaking_time;
  not_before_ = now() + pause;
  try_again_in(pause);
  look_up_progress();
}

}  // namespace shoal::actors
