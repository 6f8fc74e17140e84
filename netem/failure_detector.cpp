#include "netem/failure_detector.hpp"

#include <algorithm>

namespace shoal::netem {

// -- cuts -----------------------------------------------------------------------------------------

std::uint64_t failure_detector::add_cut(cut what, duration now) {
  cuts_.push_back({next_number_++, std::move(what), now});
  return cuts_.back().number;
}

void failure_detector::remove_cut(std::uint64_t number) {
  std::erase_if(cuts_, [&](const active_cut& c) { return c.number == number; });
}

bool failure_detector::refuse(machine_index a, machine_index b, duration now) {
  return refused_.emplace(unordered(a, b), now).second;
}

bool failure_detector::blocked(machine_index from, machine_index to) const {
  return std::any_of(cuts_.begin(), cuts_.end(),
                     [&](const active_cut& c) { return c.what.blocks(from, to); }) ||
         refused_.contains(unordered(from, to));
}

bool failure_detector::cut_off(machine_index a, machine_index b, duration now) const {
  const auto before = now - detection_time_;
  if (const auto found = refused_.find(unordered(a, b)); found != refused_.end())
    if (found->second <= before) return true;
  return std::any_of(cuts_.begin(), cuts_.end(), [&](const active_cut& c) {
    return c.since <= before && (c.what.blocks(a, b) || c.what.blocks(b, a));
  });
}

// -- blocked pairs --------------------------------------------------------------------------------

failure_detector::blocked_entry failure_detector::blocked_pair_of(std::uint64_t pair,
                                                                  host_index relay, duration now) {
  const auto [found, fresh] = blocked_pairs_.try_emplace(pair);
  if (fresh) found->second = {next_number_++, now, relay, {}};
  return {found->second, fresh};
}

std::optional<blocked_pair> failure_detector::give_up(std::uint64_t pair, std::uint64_t number) {
  const auto found = blocked_pairs_.find(pair);
  if (found == blocked_pairs_.end() || found->second.number != number) return std::nullopt;
  auto out = std::move(found->second);
  blocked_pairs_.erase(found);
  return out;
}

std::vector<blocked_pair> failure_detector::blocked_pairs_of(host_index host) {
  std::vector<blocked_pair> out;
  std::erase_if(blocked_pairs_, [&](auto& entry) {
    if (sender_of(entry.first) != host && receiver_of(entry.first) != host) return false;
    out.push_back(std::move(entry.second));
    return true;
  });
  return out;
}

// -- pauses ---------------------------------------------------------------------------------------

void failure_detector::pause(host_index host, duration now) {
  if (host >= pauses_.size()) pauses_.resize(std::size_t{host} + 1);
  pauses_[host].paused = true;
  pauses_[host].since = now;
}

std::vector<failure_detector::action> failure_detector::resume(host_index host, duration now) {
  auto& of = pauses_[host];
  of.paused = false;
  of.before += now - of.since;
  return take_waiting(host);
}

std::optional<std::vector<failure_detector::action>>
failure_detector::end_pause_by_death(host_index host) {
  if (!paused(host)) return std::nullopt;
  pauses_[host].paused = false;
  return take_waiting(host);
}

std::vector<failure_detector::action> failure_detector::take_waiting(host_index host) {
  const auto found = when_resumed_.find(host);
  if (found == when_resumed_.end()) return {};
  auto out = std::move(found->second);
  when_resumed_.erase(found);
  return out;
}

duration failure_detector::paused_time(host_index host, duration now) const {
  if (host >= pauses_.size()) return {};
  const auto& of = pauses_[host];
  return of.before + (of.paused ? now - of.since : duration{});
}

bool failure_detector::still(host_index host, duration now) const {
  return paused(host) && pauses_[host].since <= now - detection_time_;
}

} // namespace shoal::netem
