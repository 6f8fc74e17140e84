#include "actors/conduct/collusion.hpp"

#include <cmath>
#include <set>
#include <utility>

namespace shoal::actors {

namespace {

/// Contributions of `at` count for `epoch`.
bool is_recent(std::uint64_t at, std::uint64_t epoch) {
  return at <= epoch && epoch <= at + 1;
}

} // namespace

void collusion::note(peer_id by, bool attacker, std::uint64_t epoch,
                     std::span<const float> values) {
  std::lock_guard guard(mutex_);
  newest_[{values.size(), by}] = {attacker, epoch, {values.begin(), values.end()}};
}

std::optional<known_contributions> collusion::known(std::uint64_t epoch, std::size_t size,
                                                    bool everybody) const {
  std::lock_guard guard(mutex_);
  known_contributions out;
  out.mean.resize(size);
  out.deviation.resize(size);
  const auto each = [&](const auto& use) {
    for (const auto& [key, one] : newest_)
      if (key.first == size && one.attacker != everybody && is_recent(one.epoch, epoch))
        use(one.values);
  };
  each([&](const std::vector<float>& values) {
    ++out.count;
    for (std::size_t j = 0; j < size; ++j) out.mean[j] += values[j];
  });
  if (out.count == 0) return std::nullopt;
  for (auto& x : out.mean) x /= static_cast<double>(out.count);
  each([&](const std::vector<float>& values) {
    for (std::size_t j = 0; j < size; ++j) {
      const double from = values[j] - out.mean[j];
      out.deviation[j] += from * from;
    }
  });
  for (auto& x : out.deviation) x = std::sqrt(x / static_cast<double>(out.count));
  return out;
}

std::size_t collusion::attackers(std::uint64_t epoch) const {
  std::lock_guard guard(mutex_);
  std::set<peer_id> counted;
  for (const auto& [key, one] : newest_)
    if (one.attacker && is_recent(one.epoch, epoch)) counted.insert(key.second);
  return counted.size();
}

std::vector<float> collusion::agreed(std::uint64_t epoch, std::size_t size,
                                     const std::function<std::vector<float>()>& values) {
  {
    std::lock_guard guard(mutex_);
    const auto found = agreed_.find(size);
    if (found != agreed_.end() && found->second.epoch == epoch) return found->second.values;
  }
  auto made = values();
  std::lock_guard guard(mutex_);
  auto& kept = agreed_[size];
  if (kept.values.empty() || kept.epoch != epoch) kept = {epoch, std::move(made)};
  return kept.values;
}

} // namespace shoal::actors
