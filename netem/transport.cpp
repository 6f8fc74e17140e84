#include "netem/transport.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/portable_math.hpp"

#include <algorithm>

namespace shoal::netem {

namespace {

// SimGrid 3.32: network/latency-factor, bandwidth-factor, TCP-gamma (bytes), weight-S, and its
// cross-traffic share.
constexpr double lv08_latency_factor = 13.01;
constexpr double lv08_bandwidth_factor = 0.97;
constexpr double lv08_gamma = 4194304;
constexpr double lv08_weight_s = 20537;
constexpr double lv08_cross_traffic = 0.05;

/// Below this round trip, the window never limits a transfer for long.
constexpr duration least_round_trip = std::chrono::milliseconds(1);

} // namespace

const char* name_of(rate_limit why) {
  switch (why) {
  case rate_limit::connecting:
    return "connecting";
  case rate_limit::latency:
    return "latency";
  case rate_limit::slow_start:
    return "slow_start";
  case rate_limit::window:
    return "window";
  case rate_limit::max_window:
    return "max_window";
  case rate_limit::loss:
    return "loss";
  case rate_limit::cap:
    return "cap";
  case rate_limit::link:
    return "link";
  case rate_limit::cut:
    return "cut";
  }
  return "";
}

transport::transport(transfer_model model, tcp_options tcp) : model_(model), tcp_(tcp) {
  if (model_ == transfer_model::tcp) flows_.follow(&changed_);
}

link_id transport::add_link(double bits_per_second, const link_queue& queue) {
  queues_.push_back(queue);
  return flows_.add_link(bits_per_second *
                         (model_ == transfer_model::lv08 ? lv08_bandwidth_factor : 1));
}

void transport::set_capacity(link_id link, double bits_per_second, duration now) {
  flows_.set_capacity(
      link, bits_per_second * (model_ == transfer_model::lv08 ? lv08_bandwidth_factor : 1), now);
  tell_rates();
}

double transport::capacity(link_id link) const {
  return flows_.capacity(link) / (model_ == transfer_model::lv08 ? lv08_bandwidth_factor : 1);
}

duration transport::queueing_delay(link_id link, duration now) const {
  const auto& queue = queues_[static_cast<std::uint32_t>(link)];
  if (model_ != transfer_model::tcp || queue.pushes_back) return {};
  double waiting = 0; // bytes
  flows_.each_on(link, [&](std::uint64_t slot, double rate, bool limited_here) {
    if (!limited_here) return;
    const auto& r = records_[slot];
    if (r.parked) {
      auto seen = r.steady;
      seen.now = now;
      waiting += standing_bytes(tcp_, r.connection, seen);
      return;
    }
    waiting += std::max(0.0, r.connection.window - rate / 8 * to_seconds(r.round_trip));
  });
  const auto full_rate = flows_.capacity(link);
  if (waiting <= 0 || full_rate <= 0) return {};
  return from_seconds(8 * std::min(waiting, queue.bytes(full_rate)) / full_rate);
}

transport::transfer_id transport::start(const transfer_request& what, duration now) {
  if (model_ == transfer_model::max_min)
    return flows_.start(what.path, what.bytes, what.cap, now, what.tag);
  SHOAL_CHECK(what.path.size() <= most_links && what.way_back.size() <= most_links,
              "a path has at most most_links links");
  std::uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(records_.size());
    records_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  auto& r = records_[slot];
  const auto generation = r.generation + 1;
  r = {};
  r.generation = generation;
  r.alive = true;
  r.tag = what.tag;
  r.bytes = what.bytes;
  r.path_length = static_cast<std::uint32_t>(what.path.size());
  std::copy(what.path.begin(), what.path.end(), r.path);
  r.back_length = static_cast<std::uint32_t>(what.way_back.size());
  std::copy(what.way_back.begin(), what.way_back.end(), r.back);
  r.delay = what.delay;
  r.round_trip = what.round_trip;
  r.cap = what.cap;
  r.connection = what.connection;
  ++active_;
  if (model_ == transfer_model::lv08) {
    say(slot, now, 0, rate_limit::latency);
    set_timer(slot, now + from_seconds(lv08_latency_factor * to_seconds(r.delay)));
  } else {
    r.loss_cap = loss_cap(tcp_, what.loss_events, r.round_trip);
    if (!r.connection.connected && r.round_trip > duration{}) {
      say(slot, now, 0, rate_limit::connecting);
      set_timer(slot, now + r.round_trip);
    } else {
      begin_flow(slot, now);
    }
  }
  return {slot, generation};
}

std::uint64_t transport::cancel(transfer_id id, duration now) {
  if (model_ == transfer_model::max_min) {
    const auto left = flows_.cancel(id, now);
    tell_rates();
    return left;
  }
  auto& r = records_.at(id.slot);
  SHOAL_CHECK(r.alive && r.generation == id.generation, "no such transfer");
  const auto left = r.flowing ? flows_.cancel(r.flow, now) : r.bytes;
  r.alive = false;
  free_.push_back(id.slot);
  --active_;
  tell_rates();
  return left;
}

void transport::change(transfer_id id, const path_now& way, duration now) {
  if (model_ == transfer_model::max_min) {
    flows_.set_cap(id, way.cap, now);
    return tell_rates();
  }
  auto& r = records_.at(id.slot);
  SHOAL_CHECK(r.alive && r.generation == id.generation, "no such transfer");
  unpark(id.slot, now);
  r.delay = way.delay;
  r.round_trip = way.round_trip;
  r.cap = way.cap;
  if (model_ == transfer_model::tcp) r.loss_cap = loss_cap(tcp_, way.loss_events, r.round_trip);
  if (r.stopped || !r.flowing) return;
  set_cap(r, now);
  // A round trip that was too short to count left no timer.
  if (model_ == transfer_model::tcp && r.timer == 0 && r.round_trip >= least_round_trip)
    set_timer(id.slot, now + r.round_trip);
  tell_rates();
}

void transport::stop(transfer_id id, duration now) {
  if (model_ == transfer_model::max_min) {
    flows_.set_cap(id, 0, now);
    return tell_rates();
  }
  auto& r = records_.at(id.slot);
  SHOAL_CHECK(r.alive && r.generation == id.generation, "no such transfer");
  unpark(id.slot, now);
  r.stopped = true;
  r.timer = 0;
  r.cap_why = rate_limit::cut;
  r.now_cap = 0;
  if (r.flowing)
    flows_.set_cap(r.flow, 0, now);
  else
    say(id.slot, now, 0, rate_limit::cut);
  tell_rates();
}

void transport::go_on(transfer_id id, const path_now& way, duration now) {
  if (model_ == transfer_model::max_min) return change(id, way, now);
  auto& r = records_.at(id.slot);
  SHOAL_CHECK(r.alive && r.generation == id.generation && r.stopped, "no such transfer");
  r.stopped = false;
  if (r.flowing && model_ == transfer_model::tcp) after_timeout(tcp_, r.connection, now);
  change(id, way, now);
  if (r.flowing) return;
  say(id.slot, now, 0,
      model_ == transfer_model::lv08 ? rate_limit::latency : rate_limit::connecting);
  set_timer(id.slot, now + (model_ == transfer_model::lv08
                                ? from_seconds(lv08_latency_factor * to_seconds(r.delay))
                                : r.round_trip));
}

void transport::set_cap(record& r, duration now) {
  const double cap = window_cap(r, r.cap_why);
  if (cap == r.now_cap) return;
  r.now_cap = cap;
  flows_.set_cap(r.flow, cap, now);
}

std::optional<duration> transport::next_event() {
  follow_rates();
  auto next = flows_.next_completion();
  tell_rates();
  if (next_timer() && (!next || timers_.top().at < *next)) next = timers_.top().at;
  return next;
}

void transport::advance(duration now, std::vector<finished_transfer>& out) {
  // Steps from instant to instant: an end changes rates, and rates change when a window matters
  // next.
  while (const auto next = next_event()) {
    if (*next > now) break;
    const auto at = *next;
    finish(at, out); // must precede the timers, whose transfers may end here
    timers_due(at);
  }
  finish(now, out);
}

void transport::finish(duration now, std::vector<finished_transfer>& out) {
  ended_.clear();
  flows_.advance(now, ended_);
  tell_rates();
  for (const auto& ended : ended_) {
    if (model_ == transfer_model::max_min) {
      out.push_back({ended.tag, ended.at, {}});
      continue;
    }
    auto& r = records_[ended.tag];
    if (model_ == transfer_model::tcp) {
      catch_up(r, ended.at);
      last_round_trip(r, ended.at);
    }
    r.connection.connected = true;
    r.connection.used_until = ended.at;
    out.push_back({r.tag, ended.at, r.connection});
    r.alive = false;
    free_.push_back(static_cast<std::uint32_t>(ended.tag));
    --active_;
  }
}

void transport::set_timer(std::uint32_t slot, duration at) {
  records_[slot].timer = next_timer_;
  timers_.push({at, next_timer_++, slot});
}

/// Drops timers that are no longer valid. Returns true if a timer is left.
bool transport::next_timer() {
  while (!timers_.empty()) {
    const auto& top = timers_.top();
    if (records_[top.slot].alive && records_[top.slot].timer == top.number) return true;
    timers_.pop();
  }
  return false;
}

/// Serves timers one after the other. When one of several equal flows has overflowed, the others
/// see the capacity that it released.
void transport::timers_due(duration now) {
  while (next_timer() && timers_.top().at <= now) {
    const auto slot = timers_.top().slot;
    timers_.pop();
    auto& r = records_[slot];
    r.timer = 0;
    if (r.flowing) {
      round_trip_over(slot, now);
    } else {
      r.connection.connected = true;
      begin_flow(slot, now);
    }
  }
}

void transport::begin_flow(std::uint32_t slot, duration now) {
  auto& r = records_[slot];
  r.flowing = true;
  if (model_ == transfer_model::lv08) {
    link_use uses[2 * most_links];
    std::size_t count = 0;
    double penalty = to_seconds(r.delay);
    for (std::uint32_t i = 0; i < r.path_length; ++i) {
      uses[count++] = {r.path[i], 1};
      penalty += lv08_weight_s / (capacity(r.path[i]) / 8);
    }
    for (std::uint32_t i = 0; i < r.back_length; ++i)
      uses[count++] = {r.back[i], lv08_cross_traffic};
    r.now_cap = window_cap(r, r.cap_why);
    r.flow = flows_.start(std::span(uses, count), r.bytes, r.now_cap, penalty > 0 ? 1 / penalty : 1,
                          now, slot);
    return;
  }
  begin_transfer(tcp_, r.connection, now, r.round_trip);
  r.flowing_since = r.counted_until = now;
  r.now_cap = window_cap(r, r.cap_why);
  link_use uses[most_links];
  for (std::uint32_t i = 0; i < r.path_length; ++i) uses[i] = {r.path[i], 1};
  double weight = 1;
  if (tcp_.rtt_bias > 0 && r.round_trip > duration{})
    weight = portable::pow(0.1 / std::max(to_seconds(r.round_trip + tcp_.queue.time), 1e-3),
                           tcp_.rtt_bias);
  r.flow = flows_.start(std::span(uses, r.path_length), r.bytes, r.now_cap, weight, now, slot);
  if (r.round_trip >= least_round_trip) set_timer(slot, now + r.round_trip);
}

double transport::window_cap(const record& r, rate_limit& why) const {
  double cap = r.cap;
  why = rate_limit::cap;
  auto at_most = [&](double other, rate_limit reason) {
    if (other < cap) {
      cap = other;
      why = reason;
    }
  };
  if (model_ == transfer_model::lv08) {
    if (r.delay > duration{})
      at_most(8 * lv08_gamma / (2 * to_seconds(r.delay)), rate_limit::max_window);
    return cap;
  }
  at_most(r.loss_cap, rate_limit::loss);
  if (r.round_trip <= duration{}) return cap;
  const double rtt = to_seconds(r.round_trip);
  at_most(8 * tcp_.max_window / rtt, rate_limit::max_window);
  if (r.round_trip >= least_round_trip)
    at_most(8 * r.connection.window / rtt,
            r.connection.avoiding ? rate_limit::window : rate_limit::slow_start);
  return cap;
}

round_trip_seen transport::see(const record& r, duration now) {
  round_trip_seen seen;
  seen.now = now;
  seen.round_trip = r.round_trip;
  seen.rate = flows_.rate(r.flow);
  const auto link = flows_.bottleneck(r.flow);
  seen.window_limited = !link;
  if (link) {
    seen.sharers = static_cast<double>(flows_.count_on(*link));
    const auto& queue = queues_[static_cast<std::uint32_t>(*link)];
    seen.queue_bytes = queue.bytes(flows_.capacity(*link)) / seen.sharers;
    seen.pushes_back = queue.pushes_back;
    if (!r.connection.avoiding) seen.queue_delay = queueing_delay(*link, now);
  }
  return seen;
}

void transport::round_trip_over(std::uint32_t slot, duration now) {
  auto& r = records_[slot];
  const auto seen = see(r, now);
  next_round_trip(tcp_, r.connection, seen);
  r.counted_until = now;
  set_cap(r, now);
  park_or_wait(slot, seen);
}

void transport::park_or_wait(std::uint32_t slot, const round_trip_seen& seen) {
  auto& r = records_[slot];
  r.parked = never_limits(tcp_, r.connection, seen);
  if (r.parked)
    r.steady = seen;
  else
    set_timer(slot, r.counted_until + r.round_trip);
}

/// Advances the window of a parked transfer by the round trips that have passed.
void transport::catch_up(record& r, duration now) {
  if (!r.parked) return;
  const auto trips = (now - r.counted_until) / r.round_trip;
  if (trips <= 0) return;
  next_round_trips(tcp_, r.connection, r.steady, r.counted_until, trips);
  r.counted_until += trips * r.round_trip;
}

void transport::unpark(std::uint32_t slot, duration now) {
  auto& r = records_[slot];
  if (!r.parked) return;
  catch_up(r, now);
  set_cap(r, now);
  r.parked = false;
  set_timer(slot, r.counted_until + r.round_trip);
}

/// Unparks transfers whose rate has changed, since their windows can matter again. A new cap may
/// change the rates once more.
void transport::follow_rates() {
  if (model_ != transfer_model::tcp) return;
  for (flows_.next_completion(); !changed_.empty(); flows_.next_completion()) {
    following_.clear();
    following_.swap(changed_);
    for (const auto& change : following_) {
      auto& r = records_[change.tag];
      if (!r.alive || !r.parked) continue;
      catch_up(r, change.at);
      set_cap(r, flows_.now());
    }
    for (const auto& change : following_) {
      auto& r = records_[change.tag];
      if (r.alive && r.parked)
        park_or_wait(static_cast<std::uint32_t>(change.tag), see(r, flows_.now()));
    }
  }
}

/// Lets the window grow for the bytes since the last whole round trip, for the connection's next
/// transfer.
void transport::last_round_trip(record& r, duration now) {
  if (r.round_trip < least_round_trip || now <= r.counted_until) return;
  round_trip_seen seen;
  seen.now = now;
  seen.round_trip = r.round_trip;
  seen.round_trips = to_seconds(now - r.counted_until) / to_seconds(r.round_trip);
  seen.rate = 8 * static_cast<double>(r.bytes) / to_seconds(now - r.flowing_since);
  seen.window_limited = seen.rate > 0.99 * r.now_cap;
  seen.queue_bytes = unlimited; // a whole round trip shows every overflow
  seen.pushes_back = r.parked && r.steady.pushes_back;
  next_round_trip(tcp_, r.connection, seen);
}

void transport::on_rate(std::function<void(const rate_change&)> told) {
  told_ = std::move(told);
  flows_.watch(told_ ? &rates_ : nullptr);
}

void transport::say(std::uint32_t slot, duration at, double rate, rate_limit why) {
  if (told_) told_({records_[slot].tag, at, rate, why, {}, 0});
}

void transport::tell_rates() {
  if (!told_) return;
  for (const auto& note : rates_) {
    rate_change change{note.tag, note.at, note.rate, rate_limit::cap, {}, note.sharers};
    if (model_ != transfer_model::max_min) {
      change.tag = records_[note.tag].tag;
      change.why = records_[note.tag].cap_why;
    }
    if (note.bottleneck) {
      change.why = rate_limit::link;
      change.link = *note.bottleneck;
    }
    told_(change);
  }
  rates_.clear();
}

} // namespace shoal::netem
