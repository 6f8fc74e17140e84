#include "scenarios/runner/line_engine.hpp"

namespace shoal::scenarios {

result<std::vector<line_plan>> plan_lines(const scenario& what) {
  std::vector<line_plan> out;
  result<void> fine;
  const auto add = [&](const over_time_options& o, changed_line of, std::size_t index) {
    if (!o.any() || !fine) return;
    auto changes = changes_of(o, "."); // the trace's path is absolute already
    if (changes)
      out.push_back({std::move(*changes), o.repeat, of, index});
    else
      fine = failure{changes.error()};
  };
  for (std::size_t i = 0; i < what.peers.size(); ++i)
    add(what.peers[i].over_time, changed_line::group, i);
  for (std::size_t i = 0; i < what.network.links.size(); ++i)
    add(what.network.links[i].over_time, changed_line::way, i);
  std::size_t i = 0;
  for (const auto& [name, link] : what.network.shared_links)
    add(link.over_time, changed_line::shared, i++);
  if (!fine) return failure{fine.error()};
  return out;
}

line_engine::line_engine(world& in, effects& on, const scenario& what,
                         const network_machines& network, std::vector<std::size_t> group_of_host,
                         std::vector<line_plan> plans)
    : world_(in), effects_(on), scenario_(what), network_(network),
      group_of_host_(std::move(group_of_host)), plans_(std::move(plans)) {
  for (const auto& link : what.network.links) ways_.push_back(link.path);
  for (const auto& [name, link] : what.network.shared_links) shared_.push_back(link);
}

void line_engine::schedule() {
  for (std::size_t i = 0; i < plans_.size(); ++i)
    world_.clock().at(plans_[i].changes.front().at, [this, i] { due(i, 0, {}); });
}

void line_engine::due(std::size_t index, std::size_t step, duration from) {
  if (stopped_) return;
  const auto& plan = plans_[index];
  apply(plan, plan.changes[step]);
  if (++step == plan.changes.size()) {
    if (plan.repeat <= duration{}) return;
    step = 0;
    from += plan.repeat;
  }
  world_.clock().at(from + plan.changes[step].at,
                    [this, index, step, from] { due(index, step, from); });
}

void line_engine::apply(const line_plan& plan, const netem::line_change& what) {
  switch (plan.of) {
  case changed_line::group:
    for (std::size_t host = 0; host < group_of_host_.size(); ++host) {
      if (group_of_host_[host] != plan.index) continue;
      auto line = effects_.line_of(network_.peers[host]);
      if (what.up) line.up = *what.up;
      if (what.down) line.down = *what.down;
      if (what.delay) line.quality.delay = *what.delay;
      if (what.loss) line.quality.loss = {.rate = *what.loss};
      effects_.set_line(network_.peers[host], line);
      if ((what.up || what.down) && network_.homes[host] != netem::no_site)
        world_.net().set_rates_of_site(network_.homes[host], line.up, line.down);
    }
    return;
  case changed_line::way: {
    auto& path = ways_[plan.index];
    if (what.delay) path.delay = *what.delay;
    if (what.loss) path.loss = *what.loss;
    const auto& link = scenario_.network.links[plan.index];
    world_.net().set_path(network_.regions.at(link.from), network_.regions.at(link.to),
                          quality_of(path));
    return;
  }
  case changed_line::shared: {
    auto& link = shared_[plan.index];
    if (what.up) link.up = *what.up;
    if (what.down) link.down = *what.down;
    world_.net().set_rates_of_site(network_.shared.at(link.region), link.up, link.down);
    return;
  }
  }
}

} // namespace shoal::scenarios
