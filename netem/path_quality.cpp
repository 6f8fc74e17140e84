#include "netem/path_quality.hpp"

#include "kernels/base/portable_math.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shoal::netem {

namespace {

constexpr double farthest = 4;

/// 1 - P(Z <= z) of the standard normal distribution. The error is at most 1.5e-7 absolute, far
/// below the precision of measured jitter.
/// Source: Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.2.17.
double upper_tail(double z) {
  const double t = 1 / (1 + 0.2316419 * std::abs(z));
  const double density = 0.3989422804014327 * portable::exp(-z * z / 2);
  const double tail =
      density * t *
      (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return std::clamp(z >= 0 ? tail : 1 - tail, 1e-12, 1.0);
}

double pareto(double z) {
  return (portable::exp(-portable::log(upper_tail(z)) / 3) - 1.5) / 0.8660254037844386;
}

loss_model both(loss_model a, loss_model b) {
  if (!a.any()) return b;
  if (!b.any()) return a;
  if (!a.bursts() && b.bursts()) std::swap(a, b);
  if (a.bursts())
    a.in_good = 1 - (1 - a.in_good) * (1 - b.mean());
  else
    a.rate = 1 - (1 - a.rate) * (1 - b.rate);
  return a;
}

} // namespace

path_quality in_series(std::initializer_list<const path_quality*> parts) {
  path_quality out = **parts.begin();
  double variance = 0;
  duration widest = out.jitter;
  bool several = false;
  for (const auto* part : parts) {
    const double jitter = to_seconds(part->jitter);
    variance += jitter * jitter;
    if (part == *parts.begin()) continue;
    several = several || jitter != 0;
    if (widest < part->jitter) {
      widest = part->jitter;
      out.shape = part->shape;
      out.correlation = part->correlation;
    }
    out.delay += part->delay;
    out.flow_cap = std::min(out.flow_cap, part->flow_cap);
    out.duplicate = 1 - (1 - out.duplicate) * (1 - part->duplicate);
    out.reorder = 1 - (1 - out.reorder) * (1 - part->reorder);
    out.loss = both(out.loss, part->loss);
  }
  if (several) out.jitter = from_seconds(std::sqrt(variance));
  return out;
}

double loss_model::mean() const noexcept {
  if (!bursts()) return rate;
  const double bad = p / (p + r);
  return bad * in_bad + (1 - bad) * in_good;
}

double loss_model::event_rate() const noexcept {
  if (!bursts()) return rate;
  const double good = r / (p + r);
  // Each visit of the bad state that loses at least one packet is one event.
  const double seen = in_bad >= 1 ? 1 : in_bad / (in_bad + (1 - in_bad) * r);
  return std::min(mean(), good * (p * seen + in_good));
}

double jitter_factor(jitter_shape shape, double z) {
  double x = 0;
  switch (shape) {
  case jitter_shape::uniform:
    x = 1 - 2 * upper_tail(z);
    break;
  case jitter_shape::normal:
    x = z;
    break;
  case jitter_shape::pareto:
    x = pareto(z);
    break;
  case jitter_shape::paretonormal:
    x = (3 * pareto(z) + z) / 4;
    break;
  }
  return std::clamp(x, -farthest, farthest);
}

duration draw_delay(const path_quality& path, rng& draws, path_memory* memory) {
  if (path.jitter.count() == 0) return path.delay;
  const bool correlated = path.correlation > 0 && memory != nullptr;
  duration offset;
  if (path.shape == jitter_shape::uniform && !correlated) {
    const auto width = static_cast<std::uint64_t>(path.jitter.count());
    offset = duration{static_cast<std::int64_t>(draws.below(2 * width + 1)) - path.jitter.count()};
  } else {
    double z = draws.normal();
    if (correlated) {
      if (memory->drawn)
        z = path.correlation * memory->z + std::sqrt(1 - path.correlation * path.correlation) * z;
      memory->z = z;
      memory->drawn = true;
    }
    offset = from_seconds(to_seconds(path.jitter) * jitter_factor(path.shape, z));
  }
  return std::max(duration{}, path.delay + offset);
}

unsigned draw_retransmissions(const loss_model& loss, std::uint64_t packets, rng& draws,
                              path_memory* memory) {
  unsigned again = 0;
  for (; again < 15; ++again) {
    bool lost = false;
    if (!loss.bursts()) {
      // 1 - (1 - rate)^packets
      lost = draws.uniform() < 1 - portable::pow(1 - loss.rate, static_cast<double>(packets));
    } else {
      // A timeout is longer than a burst, and packets of other connections change the state
      // meanwhile. So the state is drawn anew.
      if (again > 0 && memory != nullptr)
        memory->bad = draws.uniform() < loss.p / (loss.p + loss.r);
      for (std::uint64_t i = 0; i < packets; ++i) {
        const double change = draws.uniform();
        bool now_bad = memory != nullptr && memory->bad;
        now_bad = now_bad ? change >= loss.r : change < loss.p;
        if (memory != nullptr) memory->bad = now_bad;
        if (draws.uniform() < (now_bad ? loss.in_bad : loss.in_good)) lost = true;
      }
    }
    if (!lost) break;
  }
  return again;
}

duration distance(const coordinates& a, const coordinates& b) {
  const double dx = a.x - b.x, dy = a.y - b.y;
  return from_seconds(std::sqrt(dx * dx + dy * dy) + std::abs(a.height) + std::abs(b.height));
}

} // namespace shoal::netem
