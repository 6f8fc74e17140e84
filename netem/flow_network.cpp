#include "netem/flow_network.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::netem {

namespace {

constexpr duration never = duration::max();

// Rounds up to whole nanoseconds, but not because of the last bit of a double.
duration time_for(double bits, double rate) {
  if (bits <= 0) return duration{0};
  if (rate <= 0) return never;
  const double ns = bits / rate * 1e9 * (1 - 1e-15);
  return ns < 4e18 ? duration{static_cast<std::int64_t>(std::ceil(ns))} : never;
}

double bits_in(double rate, duration time) {
  return time.count() == 0 ? 0 : rate * (static_cast<double>(time.count()) * 1e-9);
}

} // namespace

link_id flow_network::add_link(double bits_per_second) {
  return solver_.add_link(bits_per_second);
}

void flow_network::set_capacity(link_id link, double bits_per_second, duration now) {
  move_to(now);
  solver_.set_capacity(link, bits_per_second);
}

flow_id flow_network::start(std::span<const link_id> path, std::uint64_t bytes,
                            double cap_bits_per_second, duration now, std::uint64_t tag) {
  path_.clear();
  for (const auto link : path) path_.push_back({link, 1});
  return start(path_, bytes, cap_bits_per_second, 1, now, tag);
}

flow_id flow_network::start(std::span<const link_use> path, std::uint64_t bytes,
                            double cap_bits_per_second, double weight, duration now,
                            std::uint64_t tag) {
  move_to(now);
  std::uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(flows_.size());
    flows_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  auto& flow = flows_[slot];
  const auto generation = flow.generation + 1;
  flow = {};
  flow.generation = generation;
  flow.alive = true;
  flow.remaining_bits = 8 * static_cast<double>(bytes);
  flow.bytes = bytes;
  flow.since = flow.started = now;
  flow.sequence = next_sequence_++;
  flow.tag = tag;
  ++active_;
  if (bytes == 0 || (path.empty() && cap_bits_per_second == unlimited)) {
    flow.remaining_bits = 0;
    set_end(slot, now);
    return {slot, generation};
  }
  const auto f = solver_.add_flow(path, cap_bits_per_second, weight);
  flow.in_solver = f;
  if (slot_of_.size() <= f) slot_of_.resize(f + 1, none);
  slot_of_[f] = slot;
  return {slot, generation};
}

void flow_network::set_cap(flow_id id, double cap_bits_per_second, duration now) {
  auto& flow = at(id);
  move_to(now);
  if (flow.in_solver != none) solver_.set_cap(flow.in_solver, cap_bits_per_second);
}

std::uint64_t flow_network::cancel(flow_id id, duration now) {
  auto& flow = at(id);
  move_to(now);
  // Rounding must not turn 3 bytes into 4, so up to a millionth of a byte is ignored.
  const double left = flow.remaining_bits - bits_in(flow.rate, now - flow.since);
  const double left_bytes = flow.end <= now ? 0 : std::max(0.0, std::ceil(left / 8 - 1e-6));
  release(id.slot);
  return std::min(static_cast<std::uint64_t>(left_bytes), flow.bytes);
}

std::optional<duration> flow_network::next_completion() {
  settle();
  if (completions_.empty()) return std::nullopt;
  return completions_.front().end;
}

void flow_network::advance(duration now, std::vector<finished>& out) {
  SHOAL_CHECK(now >= now_, "time goes back");
  for (;;) {
    const auto next = next_completion();
    if (!next || *next > now) break;
    now_ = std::max(now_, *next);
    while (!completions_.empty() && completions_.front().end <= now_) {
      const auto slot = completions_.front().slot;
      out.push_back({{slot, flows_[slot].generation}, flows_[slot].tag, completions_.front().end});
      release(slot);
    }
  }
  now_ = now;
}

bool flow_network::alive(flow_id id) const {
  return id.slot < flows_.size() && flows_[id.slot].alive &&
         flows_[id.slot].generation == id.generation;
}

double flow_network::rate(flow_id id) {
  settle();
  return at(id).rate;
}

double flow_network::remaining_bytes(flow_id id, duration now) {
  move_to(now);
  settle();
  const auto& flow = at(id);
  return std::max(0.0, flow.remaining_bits - bits_in(flow.rate, now - flow.since)) / 8;
}

std::uint64_t flow_network::bytes(flow_id id) const {
  return at(id).bytes;
}
std::uint64_t flow_network::tag(flow_id id) const {
  return at(id).tag;
}
duration flow_network::started(flow_id id) const {
  return at(id).started;
}

duration flow_network::expected_end(flow_id id) {
  settle();
  return at(id).end;
}

std::optional<link_id> flow_network::bottleneck(flow_id id) {
  settle();
  const auto& flow = at(id);
  if (flow.in_solver == none) return std::nullopt;
  const auto link = solver_.bottleneck(flow.in_solver);
  return link == max_min::no_link ? std::nullopt : std::optional{link};
}

double flow_network::used(link_id link) {
  settle();
  return solver_.used(link);
}

std::vector<flow_id> flow_network::flows_on(link_id link) const {
  std::vector<flow_id> ids;
  ids.reserve(solver_.flows_on(link));
  for (std::size_t i = 0; i < solver_.flows_on(link); ++i) {
    const auto slot = slot_of_[solver_.flow_on(link, i)];
    ids.push_back({slot, flows_[slot].generation});
  }
  std::sort(ids.begin(), ids.end(), [&](flow_id a, flow_id b) {
    return flows_[a.slot].sequence < flows_[b.slot].sequence;
  });
  return ids;
}

flow_network::flow_record& flow_network::at(flow_id id) {
  SHOAL_CHECK(alive(id), "no such flow");
  return flows_[id.slot];
}

const flow_network::flow_record& flow_network::at(flow_id id) const {
  SHOAL_CHECK(alive(id), "no such flow");
  return flows_[id.slot];
}

void flow_network::move_to(duration now) {
  SHOAL_CHECK(now >= now_, "time goes back");
  if (now == now_) return;
  settle(); // changes at the old time take effect from the old time on
  SHOAL_CHECK(completions_.empty() || completions_.front().end >= now,
              "a flow has ended before this change: advance() first");
  now_ = now;
}

void flow_network::settle() {
  if (!solver_.changed()) return;
  const auto changed = solver_.solve();
  for (const auto f : changed) {
    set_rate(slot_of_[f], solver_.rate(f));
    if (follow_ != nullptr) follow_->push_back({flows_[slot_of_[f]].tag, now_});
  }
  if (watch_ == nullptr) return;
  for (const auto f : changed) {
    const auto link = solver_.bottleneck(f);
    const bool none_there = link == max_min::no_link;
    watch_->push_back({flows_[slot_of_[f]].tag, now_, solver_.rate(f),
                       none_there ? std::nullopt : std::optional{link},
                       none_there ? 0 : static_cast<std::uint32_t>(solver_.flows_on(link))});
  }
}

void flow_network::set_rate(std::uint32_t slot, double rate) {
  auto& flow = flows_[slot];
  if (flow.rate == rate) return;
  flow.remaining_bits =
      flow.end <= now_ ? 0
                       : std::max(0.0, flow.remaining_bits - bits_in(flow.rate, now_ - flow.since));
  flow.since = now_;
  flow.rate = rate;
  const auto time = time_for(flow.remaining_bits, rate);
  set_end(slot, time < never - now_ ? now_ + time : never);
}

void flow_network::release(std::uint32_t slot) {
  auto& flow = flows_[slot];
  set_end(slot, never);
  if (flow.in_solver != none) solver_.remove_flow(flow.in_solver);
  flow.in_solver = none;
  flow.alive = false;
  free_.push_back(slot);
  --active_;
}

// --- The heap of completions: flows that never end are not in it -------------------------------

void flow_network::set_end(std::uint32_t slot, duration end) {
  auto& flow = flows_[slot];
  flow.end = end;
  const completion entry{end, flow.sequence, slot};
  if (flow.heap_place == none) {
    if (end == never) return;
    completions_.push_back(entry);
    return sift_up(completions_.size() - 1, entry);
  }
  std::size_t place = flow.heap_place;
  if (end != never) {
    if (entry < completions_[place]) return sift_up(place, entry);
    return sift_down(place, entry);
  }
  flow.heap_place = none;
  const auto last = completions_.back();
  completions_.pop_back();
  if (place == completions_.size()) return;
  if (place > 0 && last < completions_[(place - 1) / 4]) {
    sift_up(place, last);
  } else {
    sift_down(place, last);
  }
}

void flow_network::put(std::size_t place, const completion& entry) {
  completions_[place] = entry;
  flows_[entry.slot].heap_place = static_cast<std::uint32_t>(place);
}

void flow_network::sift_up(std::size_t place, completion entry) {
  while (place > 0) {
    const auto parent = (place - 1) / 4;
    if (!(entry < completions_[parent])) break;
    put(place, completions_[parent]);
    place = parent;
  }
  put(place, entry);
}

void flow_network::sift_down(std::size_t place, completion entry) {
  for (;;) {
    const auto first = 4 * place + 1;
    if (first >= completions_.size()) break;
    auto best = first;
    const auto end = std::min(first + 4, completions_.size());
    for (auto child = first + 1; child < end; ++child)
      if (completions_[child] < completions_[best]) best = child;
    if (!(completions_[best] < entry)) break;
    put(place, completions_[best]);
    place = best;
  }
  put(place, entry);
}

} // namespace shoal::netem
