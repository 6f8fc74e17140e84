#include "netem/event_queue.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"

namespace shoal::netem {

event_handle event_queue::push(event what) {
  std::uint32_t index;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  auto& place = slots_[index];
  heap_.push_back({what.when.count(), sequence_++, index, place.generation});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  place.content = std::move(what);
  place.live = true;
  ++live_;
  return (std::uint64_t{place.generation} << 32) | index;
}

bool event_queue::cancel(event_handle handle) {
  auto index = static_cast<std::uint32_t>(handle);
  auto generation = static_cast<std::uint32_t>(handle >> 32);
  if (index >= slots_.size() || slots_[index].generation != generation || !slots_[index].live) return false;
  release(index);
  // Timers of answered requests would otherwise pile up until their time comes.
  if (heap_.size() > 64 && live_ < heap_.size() / 2) drop_cancelled();
  return true;
}

void event_queue::release(std::uint32_t index) {
  auto& place = slots_[index];
  place.content = {};
  place.live = false;
  ++place.generation;
  free_.push_back(index);
  --live_;
}

void event_queue::drop_cancelled() {
  std::erase_if(heap_, [this](const entry& e) { return slots_[e.slot].generation != e.generation; });
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>{});
}

duration event_queue::next_time() {
  SHOAL_CHECK(!empty(), "next_time() of an empty queue");
  while (slots_[heap_.front().slot].generation != heap_.front().generation) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
    heap_.pop_back();
  }
  return duration{heap_.front().when};
}

event event_queue::pop() {
  next_time();
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
  auto index = heap_.back().slot;
  heap_.pop_back();
  auto out = std::move(slots_[index].content);
  release(index);
  return out;
}

void event_queue::clear() {
  // Dropping a message can push others (a destroyed mailbox bounces requests); start from empty.
  auto dropped = std::move(slots_);
  slots_.clear();
  heap_.clear();
  free_.clear();
  live_ = 0;
}

}  // namespace shoal::netem
