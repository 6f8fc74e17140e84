#include "netem/churn.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/portable_math.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace shoal::netem {
namespace {

constexpr duration day_length = std::chrono::hours(24);
constexpr int most_tries = 10'000;

/// The sum of `a` and `b`, or `forever` if it is out of range.
duration later(duration a, duration b) {
  return a > forever - b ? forever : a + b;
}

} // namespace

duration end_of_gap(const daily_rhythm& day, duration from, duration length) {
  if (day.amplitude == 0 || length == forever || from == forever) return later(from, length);
  // Over a whole day the integral of the rate is a day.
  const duration whole = length / day_length * day_length;
  const double seconds = to_seconds(day_length), rest = to_seconds(length - whole);
  const double begin = to_seconds((from - day.peak) % day_length) / seconds; // turns
  constexpr double two_pi = 6.2831853071795865;
  const double swing = day.amplitude * seconds / two_pi;
  const double sine = portable::sin_turns(begin);
  double low = 0, high = seconds;
  for (int i = 0; i < 50; ++i) { // until the interval is below a nanosecond
    const double middle = (low + high) / 2;
    const double passed = middle + swing * (portable::sin_turns(begin + middle / seconds) - sine);
    (passed < rest ? low : high) = middle;
  }
  return later(from, std::max(later(whole, from_seconds(high)), shortest_lifetime));
}

session_source session_source::drawn(run_seed seed, std::string_view host, const lifetime& stay,
                                     const lifetime& gap, const process_options& how) {
  session_source out;
  const std::string name(host);
  out.process_ = process{lifetime_draws(stream(seed, "churn.session:" + name), stay),
                         lifetime_draws(stream(seed, "churn.gap:" + name), gap), how.day};
  if (!how.stationary) return out;
  process& p = *out.process_;
  rng begin = stream(seed, "churn.begin:" + name);
  const double there = mean_seconds(stay) / (mean_seconds(stay) + mean_seconds(gap));
  for (int i = 0; i < most_tries; ++i) {
    // A draw beyond `at_most` is repeated together with the choice, which gives both their right
    // probabilities.
    const bool inside = begin.uniform() < there;
    const auto left = inside ? p.stay.rest() : p.gap.rest();
    if (!left) continue;
    if (inside)
      p.first_stay = *left;
    else
      p.at = end_of_gap(p.day, duration::zero(), *left);
    break;
  }
  return out;
}

session_source session_source::replayed(std::shared_ptr<const std::vector<session>> sessions,
                                        duration loop) {
  SHOAL_CHECK(sessions != nullptr, "a replayed source needs sessions, if only an empty list");
  session_source out;
  out.replay_.sessions = std::move(sessions);
  out.replay_.loop = loop;
  return out;
}

session_source session_source::interrupted(run_seed seed, std::string_view group,
                                           std::string_view host, const outages& by,
                                           duration offset) && {
  const std::string name(group);
  interruptions_ = std::make_unique<interruptions>(
      interruptions{lifetime_draws(stream(seed, "churn.outages:" + name + ".every"), by.every),
                    lifetime_draws(stream(seed, "churn.outages:" + name + ".lasting"), by.lasting),
                    stream(seed, "churn.outage:" + std::string(host)), by.share, offset});
  next_outage();
  return std::move(*this);
}

void session_source::next_outage() {
  interruptions& by = *interruptions_;
  while (true) {
    const duration start = later(by.at, by.every.next());
    by.at = start == forever ? forever : later(start, by.lasting.next());
    const bool strikes = by.strikes.uniform() < by.share;
    if (start != forever && (!strikes || by.at <= by.offset)) continue;
    by.current = {start == forever ? forever : std::max(start - by.offset, duration::zero()),
                  by.at == forever ? forever : by.at - by.offset};
    return;
  }
}

std::optional<session> session_source::next_drawn() {
  process& p = *process_;
  if (p.at == forever) return std::nullopt;
  const duration stay = p.first_stay ? *std::exchange(p.first_stay, std::nullopt) : p.stay.next();
  session out{p.at, later(p.at, stay)};
  p.at = out.end == forever ? forever : end_of_gap(p.day, out.end, p.gap.next());
  return out;
}

std::optional<session> session_source::next_replayed() {
  replay& r = replay_;
  const auto& all = *r.sessions;
  if (r.at == all.size()) {
    if (r.loop == duration::zero() || all.empty() || r.begun > forever - 2 * r.loop)
      return std::nullopt;
    r.begun += r.loop;
    r.at = 0;
  }
  const session& found = all[r.at++];
  session out{later(r.begun, found.start), later(r.begun, found.end)};
  // A session that lasts until the end of the loop continues in the session at its beginning.
  while (r.loop > duration::zero() && r.at == all.size() && out.end == r.begun + r.loop &&
         all.front().start == duration::zero()) {
    if (all.front().end == r.loop || r.begun > forever - 3 * r.loop)
      return session{out.start, forever};
    r.begun += r.loop;
    r.at = 1;
    out.end = r.begun + all.front().end;
  }
  return out;
}

std::optional<session> session_source::next() {
  if (!interruptions_) return next_undisturbed();
  interruptions& by = *interruptions_;
  auto found = by.rest ? std::exchange(by.rest, std::nullopt) : next_undisturbed();
  while (found) {
    while (by.current.end != forever && by.current.end <= found->start) next_outage();
    if (by.current.start >= found->end) return found;
    if (by.current.end < found->end) by.rest = session{by.current.end, found->end};
    if (by.current.start > found->start) return session{found->start, by.current.start};
    found = by.rest ? std::exchange(by.rest, std::nullopt) : next_undisturbed();
  }
  return std::nullopt;
}

} // namespace shoal::netem
