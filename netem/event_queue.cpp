#include "netem/event_queue.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <utility>

namespace shoal::netem {

event_handle event_queue::push(event&& what) {
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
  sift_up(heap_.size() - 1);
  if (auto owner = what.owner; owner != 0) {
    if (owner >= first_of_.size()) first_of_.resize(owner + 1, none);
    place.next = first_of_[owner];
    if (place.next != none) slots_[place.next].previous = index;
    first_of_[owner] = index;
  }
  place.content = std::move(what);
  place.live = true;
  ++live_;
  return (std::uint64_t{place.generation} << 32) | index;
}

void event_queue::push_arrival(duration when, std::uint32_t number) {
  heap_.push_back({when.count(), sequence_++, number, arrival});
  sift_up(heap_.size() - 1);
  ++live_;
}

std::optional<event> event_queue::take(event_handle handle) {
  auto index = static_cast<std::uint32_t>(handle);
  auto generation = static_cast<std::uint32_t>(handle >> 32);
  if (index >= slots_.size() || slots_[index].generation != generation || !slots_[index].live)
    return {};
  auto out = release(index);
  drop_cancelled();
  return out;
}

std::vector<event> event_queue::take_owned(caf::actor_id owner) {
  std::vector<event> out;
  if (owner >= first_of_.size()) return out;
  while (first_of_[owner] != none) out.push_back(release(first_of_[owner]));
  drop_cancelled();
  return out;
}

std::vector<event> event_queue::take_all() {
  std::vector<event> out;
  for (std::uint32_t index = 0; index < slots_.size(); ++index)
    if (slots_[index].live) out.push_back(release(index));
  heap_.clear();
  live_ = 0;
  return out;
}

event event_queue::release(std::uint32_t index) {
  auto& place = slots_[index];
  if (auto owner = place.content.owner; owner != 0) {
    if (place.previous == none)
      first_of_[owner] = place.next;
    else
      slots_[place.previous].next = place.next;
    if (place.next != none) slots_[place.next].previous = place.previous;
    place.next = place.previous = none;
  }
  auto out = std::move(place.content);
  place.content.action = nullptr; // a moved-from function may keep its content
  place.live = false;
  if (++place.generation == arrival) ++place.generation;
  free_.push_back(index);
  --live_;
  return out;
}

void event_queue::drop_cancelled() {
  // Without this step, timers of answered requests would stay until their time comes.
  if (heap_.size() <= 64 || live_ >= heap_.size() / 2) return;
  std::erase_if(heap_, [this](const entry& e) { return cancelled(e); });
  for (auto at = heap_.size() / 4 + 1; at-- > 0;) sift_down(at);
}

void event_queue::sift_up(std::size_t at) {
  auto moving = heap_[at];
  while (at > 0) {
    auto parent = (at - 1) / 4;
    if (!(moving < heap_[parent])) break;
    heap_[at] = heap_[parent];
    at = parent;
  }
  heap_[at] = moving;
}

void event_queue::sift_down(std::size_t at) {
  if (at >= heap_.size()) return;
  auto moving = heap_[at];
  for (;;) {
    auto child = 4 * at + 1;
    if (child >= heap_.size()) break;
    auto end = std::min(child + 4, heap_.size());
    auto least = child;
    for (auto i = child + 1; i < end; ++i)
      if (heap_[i] < heap_[least]) least = i;
    if (!(heap_[least] < moving)) break;
    heap_[at] = heap_[least];
    at = least;
  }
  heap_[at] = moving;
}

void event_queue::drop_first() {
  heap_.front() = heap_.back();
  heap_.pop_back();
  sift_down(0);
  if (!heap_.empty() && heap_.front().generation != arrival)
    __builtin_prefetch(&slots_[heap_.front().slot]);
}

duration event_queue::next_time() {
  SHOAL_CHECK(!empty(), "next_time() of an empty queue");
  // Without cancelled entries, every entry is live.
  while (heap_.size() != live_ && cancelled(heap_.front())) drop_first();
  return duration{heap_.front().when};
}

std::optional<std::uint32_t> event_queue::pop_arrival() {
  if (heap_.front().generation != arrival) return std::nullopt;
  const auto number = heap_.front().slot;
  drop_first();
  --live_;
  return number;
}

event event_queue::pop() {
  next_time();
  auto index = heap_.front().slot;
  drop_first();
  return release(index);
}

} // namespace shoal::netem
