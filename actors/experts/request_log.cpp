#include "actors/experts/request_log.hpp"

namespace shoal::actors {

request_log::seen request_log::begin(const key& which) {
  const auto [at, is_new] = requests_.try_emplace(which);
  if (is_new) return seen::no;
  return at->second.is_done ? seen::answered : seen::underway;
}

void request_log::done(const key& which, payload answer) {
  auto& one = requests_[which];
  if (one.is_done) return;
  bytes_ += answer.size();
  one = {std::move(answer), true};
  order_.push_back(which);
  while (order_.size() > 1 && (order_.size() > most_ || bytes_ > most_bytes_)) {
    const auto oldest = requests_.find(order_.front());
    bytes_ -= oldest->second.answer.size();
    requests_.erase(oldest);
    order_.pop_front();
  }
}

} // namespace shoal::actors
