#include "scenarios/inference/placement_watch.hpp"

#include <algorithm>
#include <utility>

namespace shoal::scenarios {

void placement_watch::advance(duration now) {
  if (now <= last_) return;
  const auto all = servers();
  double sum = 0;
  for (const auto& each : all) sum += each.speed;
  if (sum > 0) {
    const auto rates = actors::layer_rates(all, layers_);
    stretches_.push_back(
        {last_, now, *std::min_element(rates.begin(), rates.end()) / (sum / layers_)});
  }
  last_ = now;
}

std::vector<actors::placed_server> placement_watch::servers() const {
  std::vector<actors::placed_server> out;
  for (const auto& [name, each] : servers_) out.push_back(each);
  return out;
}

bool placement_watch::is_held(std::uint32_t layer) const {
  return std::any_of(servers_.begin(), servers_.end(), [&](const auto& each) {
    return each.second.layers.first <= layer && layer < each.second.layers.last;
  });
}

void placement_watch::taken(std::uint64_t server, actors::layer_span layers, double speed,
                            duration now) {
  advance(now);
  const auto [at, is_new] =
      servers_.try_emplace(server, actors::placed_server{server, layers, speed});
  if (is_new) return;
  const auto before = std::exchange(at->second.layers, layers);
  ++moves_;
  std::erase_if(deaths_, [&](const death& each) { return each.when + excuse_ < now; });
  for (auto layer = before.first; layer < before.last; ++layer)
    if (!is_held(layer) && std::none_of(deaths_.begin(), deaths_.end(), [&](const death& each) {
          return each.layers.first <= layer && layer < each.layers.last;
        }))
      ++cut_;
}

void placement_watch::died(std::uint64_t server, duration now) {
  advance(now);
  const auto found = servers_.find(server);
  if (found == servers_.end()) return;
  deaths_.push_back({now, found->second.layers});
  servers_.erase(found);
}

double placement_watch::mean(duration from, duration now) {
  advance(now);
  double sum = 0, time = 0;
  for (const auto& each : stretches_) {
    const double part = to_seconds(each.end - std::max(each.begin, from));
    if (part <= 0) continue;
    sum += part * each.value;
    time += part;
  }
  return time > 0 ? sum / time : 0;
}

} // namespace shoal::scenarios
