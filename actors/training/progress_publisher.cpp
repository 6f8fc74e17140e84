#include "actors/training/progress_publisher.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

bool progress_publisher::is_news(const progress& mine, duration now) {
  auto value = mine.pack();
  if (published_ == value && now - published_at_ < timing_.record_lifetime / 3) return false;
  published_ = std::move(value);
  published_at_ = now;
  return true;
}

duration progress_publisher::next_refresh(const outlook& what) const {
  const auto bounded = [this](duration wait) {
    return std::clamp(wait, timing_.min_refresh, timing_.max_refresh);
  };
  if (what.busy) return bounded(what.busy_for / 2);
  auto wait = timing_.max_refresh;
  if (what.samples_per_second > 0)
    wait = bounded(from_seconds(std::clamp(what.missing_samples / what.samples_per_second / 2, 0.0,
                                           to_seconds(timing_.max_refresh))));
  return what.heard ? wait : std::min(wait, duration{std::chrono::seconds(1)});
}

} // namespace shoal::actors
