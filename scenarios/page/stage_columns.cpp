#include "scenarios/page/stage_columns.hpp"

#include <algorithm>

namespace shoal::scenarios {

time_bins<stage_columns::sums>& stage_columns::bins_of(std::uint32_t stage) {
  if (stages_.size() <= stage) stages_.resize(stage + 1);
  return stages_[stage];
}

/// Accounts for the time in which the host has held its stage.
void stage_columns::close(const time_axis& axis, std::int64_t time, std::uint32_t host,
                          holder& of) {
  if (of.stage && time > of.since) {
    stages_[*of.stage].spread(axis, of.since, time, held, time - of.since);
    places_[{*of.stage, host}].held += time - of.since;
  }
  of.since = std::max(of.since, time);
}

void stage_columns::holds(const time_axis& axis, std::int64_t time, std::uint32_t host,
                          std::optional<std::uint32_t> stage) {
  if (stage && *stage >= most_stages) return;
  auto& of = holders_[host];
  close(axis, time, host, of);
  if (of.stage) places_[{*of.stage, host}].now = false;
  if (!stage) {
    of.left = of.stage;
    of.stage.reset();
    return;
  }
  bins_of(*stage);
  places_[{*stage, host}].now = true;
  if (const auto from = std::exchange(of.left, std::nullopt); from && *from != *stage) {
    ++all_moves_;
    moves_.push_back({time, host, *from, *stage});
    if (moves_.size() > most_moves) moves_.pop_front();
  }
  of.stage = stage;
  of.since = time;
}

void stage_columns::worked(const time_axis& axis, std::int64_t time, std::uint32_t stage,
                           std::int64_t over, std::int64_t computed) {
  if (stage >= most_stages) return;
  const auto from = std::max<std::int64_t>(0, time - over);
  auto& bins = bins_of(stage);
  bins.spread(axis, from, time, known, time - from);
  bins.spread(axis, from, time, sum::computed, computed);
}

void stage_columns::gone(const time_axis& axis, std::int64_t time, std::uint32_t host) {
  const auto found = holders_.find(host);
  if (found == holders_.end()) return;
  close(axis, time, host, found->second);
  if (found->second.stage) places_[{*found->second.stage, host}].now = false;
  holders_.erase(found);
}

void stage_columns::settle(const time_axis& axis) {
  for (auto& [host, of] : holders_) close(axis, axis.end(), host, of);
}

void stage_columns::widen() {
  for (auto& one : stages_) one.widen();
}

} // namespace shoal::scenarios
