#include "netem/event_queue.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <bit>
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
  add(what.when, index, place.generation);
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
  add(when, number, arrival);
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
  for (auto& bucket : buckets_) bucket.clear();
  filled_ = 0;
  live_ = entries_ = used_ = 0;
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

// -- the radix heap -------------------------------------------------------------------------------

void event_queue::add(duration when, std::uint32_t slot, std::uint32_t generation) {
  const auto counted = std::max(when.count(), last_);
  put({counted, slot, generation});
  ++entries_;
  if (next_) next_ = std::min(*next_, duration{counted});
}

void event_queue::put(const entry& what) {
  const auto bucket = static_cast<std::size_t>(
      std::bit_width(static_cast<std::uint64_t>(what.when) ^ static_cast<std::uint64_t>(last_)));
  buckets_[bucket].push_back(what);
  filled_ |= std::uint64_t{1} << bucket;
}

void event_queue::drop_cancelled() {
  next_.reset();
  // Without this step, timers of answered requests would stay until their time comes.
  if (entries_ <= 64 || live_ >= entries_ / 2) return;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) drop_cancelled(bucket);
}

void event_queue::drop_cancelled(std::size_t bucket) {
  auto& all = buckets_[bucket];
  if (bucket == 0) {
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ = 0;
  }
  entries_ -= std::erase_if(all, [this](const entry& e) { return cancelled(e); });
  note_if_empty(bucket);
}

void event_queue::note_if_empty(std::size_t bucket) {
  if (buckets_[bucket].size() > (bucket == 0 ? used_ : 0)) return;
  buckets_[bucket].clear();
  if (bucket == 0) used_ = 0;
  filled_ &= ~(std::uint64_t{1} << bucket);
}

duration event_queue::next_time() {
  SHOAL_CHECK(!empty(), "next_time() of an empty queue");
  while (!next_) {
    const auto bucket = static_cast<std::size_t>(std::countr_zero(filled_));
    if (bucket == 0) {
      for (; used_ < buckets_[0].size() && cancelled(buckets_[0][used_]); ++used_) --entries_;
      note_if_empty(0);
      if ((filled_ & 1) != 0) next_ = duration{last_};
      continue;
    }
    // The bucket is scanned once more when its first entry is taken, and never again.
    if (entries_ != live_) drop_cancelled(bucket);
    for (const auto& each : buckets_[bucket])
      next_ = std::min(next_.value_or(duration{each.when}), duration{each.when});
  }
  return *next_;
}

/// The first entry, in bucket 0.
const event_queue::entry& event_queue::first() {
  const auto next = next_time();
  if ((filled_ & 1) == 0) {
    last_ = next.count();
    const auto bucket = static_cast<std::size_t>(std::countr_zero(filled_));
    filled_ &= ~(std::uint64_t{1} << bucket);
    for (const auto& each : buckets_[bucket]) put(each);
    buckets_[bucket].clear();
  }
  return buckets_[0][used_];
}

/// Requires: first() was called since the last other call.
void event_queue::drop_first() {
  --entries_;
  ++used_;
  next_.reset();
  note_if_empty(0);
  if ((filled_ & 1) != 0 && buckets_[0][used_].generation != arrival)
    __builtin_prefetch(&slots_[buckets_[0][used_].slot]);
}

std::optional<std::uint32_t> event_queue::pop_arrival() {
  const auto& next = first();
  if (next.generation != arrival) return std::nullopt;
  const auto number = next.slot;
  drop_first();
  --live_;
  return number;
}

event event_queue::pop() {
  const auto index = first().slot;
  drop_first();
  return release(index);
}

} // namespace shoal::netem
