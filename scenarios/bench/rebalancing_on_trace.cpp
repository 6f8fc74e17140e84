#include "scenarios/bench/rebalancing_on_trace.hpp"

#include "actors/pipeline/rebalancing.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace shoal::scenarios {

namespace {

struct event {
  duration time{};
  bool joins = false; // ends come first at equal times
  actors::peer_id node = 0;
  auto operator<=>(const event&) const = default;
};

std::vector<event> events_of(const netem::trace& nodes) {
  std::vector<event> out;
  actors::peer_id number = 0;
  for (const auto& peer : nodes.peers()) {
    ++number;
    for (const auto& one : *peer.sessions) {
      out.push_back({one.start, true, number});
      if (one.end < nodes.end()) out.push_back({one.end, false, number});
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

class player {
public:
  player(std::uint32_t stages, stage_joins joins, std::uint64_t seed)
      : stages_(stages), joins_(joins), random_(stream(seed, "rebalancing.joins")), sizes_(stages) {
  }

  void apply(const event& what) {
    if (!what.joins) {
      --sizes_[stage_of_.at(what.node)];
      stage_of_.erase(what.node);
      return;
    }
    const auto to = joins_ == stage_joins::random
                        ? static_cast<std::uint32_t>(random_.below(stages_))
                        : actors::stage_to_join(actors::totals_of(loads(), stages_));
    stage_of_[what.node] = to;
    ++sizes_[to];
  }

  bool rebalance() {
    const auto due = actors::due_move(loads(), stages_);
    if (!due) return false;
    stage_of_[due->peer] = due->to;
    --sizes_[due->from];
    ++sizes_[due->to];
    return true;
  }

  void add(double seconds, rebalancing_figures& into) const {
    const auto best = stage_of_.size() / stages_;
    if (best == 0) return;
    into.seconds += seconds;
    into.optimum += static_cast<double>(best) * seconds;
    into.throughput +=
        static_cast<double>(*std::min_element(sizes_.begin(), sizes_.end())) * seconds;
  }

private:
  std::vector<actors::stage_load> loads() const {
    std::vector<actors::stage_load> out;
    for (const auto& [node, stage] : stage_of_) {
      const auto size = static_cast<double>(sizes_[stage]);
      out.push_back({node, stage, 1 / (size * size)});
    }
    // The most loaded stage may be an empty one, which has no node to say so.
    return out;
  }

  std::uint32_t stages_;
  stage_joins joins_;
  rng random_;
  std::vector<std::uint64_t> sizes_;
  std::map<actors::peer_id, std::uint32_t> stage_of_;
};

} // namespace

rebalancing_figures play_rebalancing(const netem::trace& nodes, std::uint32_t stages,
                                     rebalancing_policy how, std::uint64_t seed) {
  SHOAL_CHECK(stages > 0 && nodes.loop() == duration{}, "a trace that ends, and a stage");
  const auto events = events_of(nodes);
  player swarm(stages, how.joins, seed);
  rebalancing_figures out;
  duration time{};
  duration next = how.period;
  for (std::size_t at = 0; time < nodes.end();) {
    auto until = nodes.end();
    if (at < events.size()) until = std::min(until, std::max(time, events[at].time));
    if (how.period > duration{}) until = std::min(until, next);
    swarm.add(to_seconds(until - time), out);
    time = until;
    while (at < events.size() && events[at].time <= time) swarm.apply(events[at++]);
    if (how.period > duration{} && time == next) {
      out.moves += swarm.rebalance() ? 1 : 0;
      next += how.period;
    }
  }
  return out;
}

} // namespace shoal::scenarios
