#include "actors/dht/bootstrap.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace shoal::actors {

bootstrap::bootstrap(std::vector<caf::actor> addresses,
                     std::function<std::vector<caf::actor>()> current, duration timeout,
                     duration now)
    : addresses_(std::move(addresses)), current_(std::move(current)), timeout_(timeout),
      started_(now), unheard_(addresses_.begin(), addresses_.end()) {}

void bootstrap::refresh(const caf::actor& self) {
  if (attempts_ > 0 && current_) addresses_ = current_();
  std::erase_if(addresses_, [&](const caf::actor& a) { return !a || a == self; });
}

void bootstrap::begin_attempt() {
  ++attempts_;
  open_ = static_cast<std::int64_t>(addresses_.size());
}

bool bootstrap::answered() {
  if (open_ > 0) --open_;
  if (!is_asking()) return false;
  phase_ = phase::searching;
  return true;
}

bool bootstrap::failed() {
  return --open_ == 0 && is_asking();
}

duration bootstrap::retry_delay() const {
  return std::min(std::chrono::seconds(attempts_), std::chrono::seconds(5));
}

bool bootstrap::join() {
  return std::exchange(phase_, phase::joined) != phase::joined;
}

void bootstrap::introduce(const caf::actor& address, std::size_t most) {
  std::erase(addresses_, address);
  std::erase(unheard_, address);
  addresses_.push_back(address);
  if (addresses_.size() > most) addresses_.erase(addresses_.begin());
  unheard_.push_back(address);
  if (is_asking()) ++open_;
}

void bootstrap::died(const caf::actor_addr& address) {
  std::erase_if(unheard_, [&](const caf::actor& a) {
    return caf::actor_cast<caf::actor_addr>(a) == address;
  });
}

std::optional<caf::actor> bootstrap::next_unheard() {
  if (unheard_.empty()) return std::nullopt;
  unheard_.push_back(unheard_.front());
  unheard_.pop_front();
  return unheard_.front();
}

} // namespace shoal::actors
