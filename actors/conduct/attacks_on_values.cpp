#include "actors/conduct/attacks_on_values.hpp"

#include "actors/averaging/round.hpp"
#include "actors/training/workload.hpp"
#include "kernels/base/portable_math.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shoal::actors {

namespace {

/// P(X < x) for a standard normal X, by Simpson's rule. Error: below 1e-9 for |x| < 8. The C
/// library's error function has other bits on other machines.
double normal_share_below(double x) {
  constexpr int pieces = 400; // even
  const double width = x / pieces;
  double sum = 0;
  for (int i = 0; i <= pieces; ++i) {
    const double t = width * i;
    sum += portable::exp(-t * t / 2) * (i == 0 || i == pieces ? 1 : i % 2 == 1 ? 4 : 2);
  }
  return 0.5 + sum * width / 3 / std::sqrt(2 * std::numbers::pi);
}

/// The x with P(X < x) = `p`, by bisection. Requires: 0 < p < 1.
double normal_quantile(double p) {
  double low = -8, high = 8;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (normal_share_below(middle) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

bool has_numbers(const payload& values, const round_request& request) {
  return !values.is_size_only() && request.weight > 0;
}

} // namespace

const workload& flipped_labels::learns_by(const workload& honest, std::uint64_t epoch) {
  std::lock_guard guard(mutex_);
  if (!strikes_in(epoch)) return honest;
  auto [found, fresh] = wrong_.try_emplace(&honest);
  if (fresh) found->second = honest.mislabelled();
  return found->second ? *found->second : honest;
}

void delayed_gradients::contribute(payload& values, const round_request& request) {
  std::lock_guard guard(mutex_);
  if (!has_numbers(values, request)) return;
  const auto floats = values.floats();
  const auto size = floats.size();
  earlier_[{size, request.epoch}] = {floats.begin(), floats.end()};
  const auto delay = static_cast<std::uint64_t>(std::max(0.0, how_.strength));
  const auto wanted = request.epoch > delay ? request.epoch - delay : 0;
  // The newest one that is old enough, or else the oldest.
  auto found = earlier_.upper_bound({size, wanted});
  if (found != earlier_.begin() && std::prev(found)->first.first == size) --found;
  earlier_.erase(earlier_.lower_bound({size, 0}), found);
  if (strikes_in(request.epoch)) values = payload{std::vector<float>(found->second)};
}

joint_attack::joint_attack(host& on, const conduct_options& how)
    : attack(on, how), with_(how.with ? how.with : std::make_shared<collusion>()) {}

void joint_attack::contribute(payload& values, const round_request& request) {
  std::lock_guard guard(mutex_);
  if (!has_numbers(values, request)) return;
  const auto size = values.floats().size();
  with_->note(on_.id(), true, request.epoch, values.floats());
  if (!strikes_in(request.epoch)) return;
  const bool everybody = how_.knows == attacker_knowledge::everybody;
  values = payload{with_->agreed(request.epoch, size, [&] {
    auto known = with_->known(request.epoch, size, everybody);
    if (!known) known = with_->known(request.epoch, size, false);
    return plan(*known, request.expected.size() + 1, with_->attackers(request.epoch));
  })};
}

std::vector<float> inner_product_manipulation::plan(const known_contributions& from, std::size_t,
                                                    std::size_t) const {
  std::vector<float> out;
  out.reserve(from.mean.size());
  for (const double x : from.mean) out.push_back(static_cast<float>(-how_.strength * x));
  return out;
}

std::vector<float> little_is_enough::plan(const known_contributions& from, std::size_t members,
                                          std::size_t attackers) const {
  const double z = how_.strength * alie_deviations(members, attackers);
  std::vector<float> out;
  out.reserve(from.mean.size());
  for (std::size_t j = 0; j < from.mean.size(); ++j)
    out.push_back(static_cast<float>(from.mean[j] - z * from.deviation[j]));
  return out;
}

double alie_deviations(std::size_t members, std::size_t attackers) {
  const auto majority = members / 2 + 1;
  if (attackers >= majority || attackers >= members) return 0;
  const double honest = static_cast<double>(members - attackers);
  const double share = (honest - static_cast<double>(majority - attackers)) / honest;
  return share > 0 ? std::max(0.0, normal_quantile(share)) : 0;
}

void watched_host::contribute(payload& values, const round_request& request) {
  if (!has_numbers(values, request)) return;
  for (const auto& each : by_) each->note(on_.id(), false, request.epoch, values.floats());
}

} // namespace shoal::actors
