#include "netem/paths.hpp"

#include <algorithm>

namespace shoal::netem {

duration paths::delay(host_index from, host_index to, host_index relay) const {
  return relay == no_host ? direct_delay(from, to)
                          : direct_delay(from, relay) + direct_delay(relay, to);
}

path_now paths::conditions(host_index from, host_index to, host_index relay) const {
  const auto quality =
      relay == no_host ? between(from, to).quality
                       : in_series({&between(from, relay).quality, &between(relay, to).quality});
  path_now out;
  out.cap = quality.flow_cap;
  if (model_ == transfer_model::max_min) return out;
  out.delay = delay(from, to, relay);
  out.round_trip = out.delay + delay(to, from, relay);
  out.loss_events = quality.loss.event_rate();
  return out;
}

topology::route paths::route(host_index from, host_index to, host_index relay) const {
  const auto sender = hosts_[from].where.machine, receiver = hosts_[to].where.machine;
  return relay == no_host ? topology_.route_between(sender, receiver)
                          : topology_.route_through(sender, hosts_[relay].where.machine, receiver);
}

duration paths::retransmission_timeout(host_index from, host_index to) const {
  return netem::retransmission_timeout(tcp_, round_trip(from, to));
}

duration paths::drawn_directly(host_index from, host_index to) {
  const auto& on = between(from, to);
  auto& draws = hosts_[from].jitter;
  auto* memory = memory_of(on, from, to);
  if (!topology_.has_coordinates()) return draw_delay(on.quality, draws, memory);
  path_quality here = on.quality;
  here.delay = direct_delay(from, to);
  return draw_delay(here, draws, memory);
}

duration paths::drawn_delay(host_index from, host_index to, host_index relay) {
  if (relay == no_host) return drawn_directly(from, to);
  const auto first = drawn_directly(from, relay);
  return first + drawn_directly(relay, to);
}

paths::small_draw paths::draw_small(host_index from, host_index to, std::uint64_t bytes) {
  const auto& on = between(from, to);
  const auto& quality = on.quality;
  auto& draws = hosts_[from].jitter;
  small_draw out{drawn_directly(from, to), 0};
  if (quality.reorder > 0 && draws.uniform() < quality.reorder) out.delay = duration{};
  if (quality.duplicate > 0 && draws.uniform() < quality.duplicate) ++out.copies;
  if (!quality.loss.any()) return out;
  const auto packets = (bytes + segment_bytes - 1) / segment_bytes;
  if (const auto again =
          draw_retransmissions(quality.loss, packets, draws, memory_of(on, from, to))) {
    out.copies += again;
    const auto timeouts = (std::int64_t{1} << again) - 1;
    out.delay += std::min(retransmission_timeout(from, to) * timeouts, detection_time_);
  }
  return out;
}

} // namespace shoal::netem
