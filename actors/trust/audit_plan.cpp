#include "actors/trust/audit_plan.hpp"

#include "actors/trust/identity.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>

namespace shoal::actors {

namespace {

__extension__ typedef unsigned __int128 uint128;

/// Samples of a member that count. A million members with so many have less than 2^64.
constexpr std::uint64_t largest_share = std::uint64_t{1} << 44;

/// A stream that all members draw from alike.
rng shared_stream(const digest& random, std::string_view name, const id128& subject = {}) {
  auto hash = statement(name);
  hash.add(random).add(subject.high).add(subject.low);
  const auto bits = hash.finish();
  std::array<std::uint64_t, 4> state;
  std::memcpy(state.data(), bits.bytes.data(), sizeof state);
  return rng(state);
}

/// Systematic sampling. The members lie along a line in random order, each as long as its share,
/// and `count` marks one unit apart hit the targets. Exact, because a unit is `total` long.
std::vector<std::uint32_t> draw_targets(std::span<const std::uint64_t> weights, std::uint64_t total,
                                        std::uint32_t count, rng& random) {
  std::vector<std::uint32_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0U);
  random.shuffle(std::span(order));
  std::vector<std::uint32_t> out;
  uint128 end = 0, mark = random.below(total);
  for (const auto i : order) {
    end += static_cast<uint128>(count) * weights[i];
    if (mark < end) out.push_back(i);
    while (mark < end) mark += total;
  }
  std::sort(out.begin(), out.end());
  return out;
}

} // namespace

std::vector<audit> plan_audits(const digest& random, std::span<const std::uint64_t> weights,
                               const std::vector<bool>& may_validate, std::uint32_t validators) {
  SHOAL_CHECK(may_validate.size() == weights.size(), "an entry for each member");
  std::vector<std::uint32_t> able;
  for (std::uint32_t i = 0; i < may_validate.size(); ++i)
    if (may_validate[i]) able.push_back(i);
  const auto count = std::min<std::size_t>(validators, able.size());
  // A weight is a member's word, so their sum needs a bound.
  std::vector<std::uint64_t> shares(weights.begin(), weights.end());
  for (auto& share : shares) share = std::min(share, largest_share);
  const auto total = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  if (count == 0 || total == 0) return {};
  auto line = shared_stream(random, "shoal.targets");
  const auto targets = draw_targets(shares, total, static_cast<std::uint32_t>(count), line);
  auto lots = shared_stream(random, "shoal.validators");
  lots.shuffle(std::span(able));
  std::vector<audit> out;
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (able[i] != targets[i]) out.push_back({able[i], targets[i]});
  return out;
}

std::optional<std::uint32_t> farthest_member(std::span<const double> distances) {
  constexpr double far = 3;
  std::vector<double> sorted;
  std::optional<std::uint32_t> out;
  double most = 0;
  for (std::uint32_t i = 0; i < distances.size(); ++i) {
    if (distances[i] < 0) continue;
    const auto distance =
        std::isnan(distances[i]) ? std::numeric_limits<double>::infinity() : distances[i];
    sorted.push_back(distance);
    if (distance > most) {
      most = distance;
      out = i;
    }
  }
  if (sorted.size() < 3) return std::nullopt;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return most > far * *middle ? out : std::nullopt;
}

std::optional<std::uint32_t>
draw_watcher(const digest& random, const std::vector<bool>& may_validate, std::uint32_t suspect) {
  std::vector<std::uint32_t> able;
  for (std::uint32_t i = 0; i < may_validate.size(); ++i)
    if (may_validate[i] && i != suspect) able.push_back(i);
  if (able.empty()) return std::nullopt;
  return able[shared_stream(random, "shoal.watcher").below(able.size())];
}

std::vector<std::uint32_t> draw_jurors(const digest& random, const id128& case_id,
                                       std::uint32_t members, std::uint32_t accuser,
                                       std::uint32_t accused, std::uint32_t most) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < members; ++i)
    if (i != accuser && i != accused) out.push_back(i);
  if (most == 0 || most >= out.size()) return out;
  auto lots = shared_stream(random, "shoal.jurors", case_id);
  lots.shuffle(std::span(out));
  out.resize(most);
  std::sort(out.begin(), out.end());
  return out;
}

} // namespace shoal::actors
