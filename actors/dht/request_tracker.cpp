#include "actors/dht/request_tracker.hpp"

#include "kernels/base/check.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace shoal::actors {

bool request_tracker::open(std::uint64_t token, request what, duration now) {
  what.asked = now;
  const bool first = ++watched_[caf::actor_cast<caf::actor_addr>(what.to.address)].open == 1;
  open_.emplace(token, std::move(what));
  slow_.push_back({now + slow_after_, token});
  return first;
}

const request_tracker::request* request_tracker::find(std::uint64_t token) const {
  const auto found = open_.find(token);
  return found == open_.end() ? nullptr : &found->second;
}

request_tracker::closed_request request_tracker::close(std::uint64_t token, duration now,
                                                       bool answered) {
  const auto found = open_.find(token);
  SHOAL_CHECK(found != open_.end(), "only an open request can be closed");
  closed_request out{std::move(found->second), false};
  open_.erase(found);
  const auto watched = watched_.find(caf::actor_cast<caf::actor_addr>(out.what.to.address));
  if (watched == watched_.end()) return out; // lost() was called
  if (answered) watched->second.answered = now;
  if (--watched->second.open > 0) return out;
  watched_.erase(watched);
  out.was_last = true;
  return out;
}

bool request_tracker::answered_since(std::uint64_t token) const {
  const auto* what = find(token);
  if (what == nullptr) return false;
  const auto watched = watched_.find(caf::actor_cast<caf::actor_addr>(what->to.address));
  return watched != watched_.end() && watched->second.answered >= what->asked;
}

bool request_tracker::asks(const node_id& who) const {
  return std::any_of(open_.begin(), open_.end(),
                     [&](const auto& r) { return r.second.to.id == who; });
}

std::vector<std::uint64_t> request_tracker::lost(const caf::actor_addr& address) {
  watched_.erase(address);
  std::vector<std::uint64_t> out;
  for (const auto& [token, what] : open_)
    if (caf::actor_cast<caf::actor_addr>(what.to.address) == address) out.push_back(token);
  return out;
}

void request_tracker::give_up(std::uint64_t token, const request& what) {
  overdue_.emplace(token, what);
  if (overdue_.size() > most_overdue) overdue_.erase(overdue_.begin());
}

const request_tracker::request* request_tracker::overdue(std::uint64_t token) const {
  const auto found = overdue_.find(token);
  return found == overdue_.end() ? nullptr : &found->second;
}

request_tracker::request request_tracker::take_overdue(std::uint64_t token) {
  auto found = overdue_.extract(token);
  SHOAL_CHECK(!found.empty(), "only an overdue request can be taken");
  return std::move(found.mapped());
}

std::optional<duration> request_tracker::next_timer(duration now) {
  auto next = duration::max();
  for (auto* queue : {&slow_, &late_}) {
    while (!queue->empty() && !open_.contains(queue->front().token)) queue->pop_front();
    if (!queue->empty()) next = std::min(next, queue->front().at);
  }
  if (slow_.empty() && late_.empty()) return std::nullopt;
  if (timer_ && *timer_ <= next) return std::nullopt;
  timer_ = next;
  return std::max(next - now, duration{});
}

bool request_tracker::timer_fired(duration now) {
  if (!timer_ || now < *timer_) return false;
  timer_.reset();
  return true;
}

std::optional<std::uint64_t> request_tracker::next_slow(duration now) {
  while (!slow_.empty() && slow_.front().at <= now) {
    const auto token = slow_.front().token;
    slow_.pop_front();
    if (!open_.contains(token)) continue;
    late_.push_back({now + std::max(timeout_ - slow_after_, duration{}), token});
    return token;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> request_tracker::next_failed(duration now) {
  while (!late_.empty() && late_.front().at <= now) {
    const auto token = late_.front().token;
    late_.pop_front();
    if (open_.contains(token)) return token;
  }
  return std::nullopt;
}

} // namespace shoal::actors
