#include "actors/averaging/averager.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::actors {

averager::averager(caf::actor_config& config, host& on, averager_config options)
    : protocol_actor(config, on), options_(std::move(options)) {}

caf::behavior averager::make_behavior() {
  if (options_.on_made) options_.on_made(options_.index, *this);
  return handlers().or_else(
      [this](hold_values& m) {
        values_ = std::move(m.values);
        on_hold();
      },
      [this](const averaging_round& m) {
        round_ = m.number;
        available_ = running_ = m.available;
        abandon();
        if (running_) begin(m);
      },
      [this](const tick& m) {
        if (m.token == round_ && running_) on_timer(m.kind);
      });
}

void averager::on_exit() {
  options_ = {};
  protocol_actor::on_exit();
}

void averager::over(outcome how, reason why) {
  running_ = false;
  options_.on_done(options_.index, {round_, how, why});
}

bool averager::fits(const payload& theirs) const {
  if (theirs.size() != values_.size() || theirs.is_size_only()) return false;
  const auto values = theirs.floats();
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

} // namespace shoal::actors
