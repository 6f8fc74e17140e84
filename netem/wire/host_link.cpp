#include "netem/wire/host_link.hpp"

#include <algorithm>
#include <chrono>

namespace shoal::netem::wire {

namespace {

constexpr duration measured_every = std::chrono::seconds(5), rates_over = std::chrono::minutes(1);

} // namespace

std::optional<duration> frame_rate::count(duration now, std::uint64_t most_frames) {
  if (now - counted_from_ >= std::chrono::seconds(1)) {
    counted_from_ = now;
    frames_ = 0;
  }
  if (++frames_ < most_frames) return {};
  // The rest of this batch counts towards the next second.
  frames_ = 0;
  counted_from_ += std::chrono::seconds(1);
  return counted_from_;
}

bool incomplete_bytes::changed(std::size_t before, std::size_t after, std::uint64_t most) {
  // The sums are correct for shrinking messages, too: unsigned numbers wrap around.
  const auto change = std::uint64_t{after} - before;
  const auto own = own_ += change;
  const auto total = total_ ? * total_ += change : own;
  return after <= before || (own <= most_of_link && total <= most);
}

void host_link::send(bool bulk, frame what, duration now) {
  auto& to = pipes[bulk ? 1 : 0];
  last_sent[bulk ? 1 : 0] = now;
  to.through->send(std::move(what));
}

void host_link::measure(duration now) {
  if (asked > duration{} && now - asked < measured_every) return;
  asked = now;
  send(false, frame_writer(frame_kind::ping).put(static_cast<std::uint64_t>(asked.count())).done(),
       now);
  lately.push_back({now, sent, received});
  while (lately.front().when < now - rates_over) lately.pop_front();
}

void host_link::pong_came(std::uint64_t stamp, duration now) {
  if (stamp != static_cast<std::uint64_t>(asked.count())) return;
  const auto took = now - asked;
  round_trip = round_trip == duration{} ? took : (7 * round_trip + took) / 8;
}

host_link::bit_rates host_link::rates(duration now) const {
  const auto begun = lately.empty() ? traffic{since, 0, 0} : lately.front();
  const auto seconds = std::max(1.0, to_seconds(now - begun.when));
  return {8 * static_cast<double>(sent - begun.sent) / seconds,
          8 * static_cast<double>(received - begun.received) / seconds};
}

bool host_link::keep_alive(duration now, duration limit, bool stopped) {
  for (int i = 0; i < 2; ++i) {
    auto& direction = pipes[i];
    if (stopped) direction.heard = std::max(direction.heard, now - limit / 2);
    if (now - last_sent[i].load() >= limit / 4)
      send(i == 1, frame_writer(frame_kind::ping).done(), now);
    if (now - direction.heard > limit && !direction.through->held_back()) return true;
  }
  return false;
}

} // namespace shoal::netem::wire
