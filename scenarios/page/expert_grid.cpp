#include "scenarios/page/expert_grid.hpp"

#include "kernels/base/text_fields.hpp"

#include <algorithm>

namespace shoal::scenarios {

namespace {

/// Empty for a text that is no place.
expert_grid::place place_of(std::string_view name) {
  expert_grid::place out;
  while (true) {
    const auto dot = name.find('.');
    const auto number = number_of<std::uint32_t>(name.substr(0, dot));
    if (!number) return {};
    out.push_back(*number);
    if (dot == std::string_view::npos) break;
    name.remove_prefix(dot + 1);
  }
  return out.size() < 2 ? expert_grid::place{} : out;
}

void end(expert_grid::one& of, std::int64_t time, std::uint32_t host, bool died) {
  for (auto& each : of.holds) {
    if (each.host != host || each.to) continue;
    each.to = time;
    each.died = died;
    of.deaths += died ? 1 : 0;
  }
}

} // namespace

void expert_grid::hears(const time_axis& axis, std::int64_t time, std::uint32_t host,
                        const heard_expert& what) {
  const auto where = place_of(what.expert);
  if (where.empty() || (experts_.size() >= most_experts && !experts_.contains(where))) return;
  auto& of = experts_[where];
  const auto set = [&](std::uint64_t& value, std::uint64_t to, sum which) {
    const auto change = static_cast<std::int64_t>(to) - static_cast<std::int64_t>(value);
    if (change != 0) of.bins.add(axis, time, which, change);
    value = to;
  };
  switch (what.what) {
  case heard_expert::news::held:
    end(of, time, host, false);
    of.holds.push_back({time, std::nullopt, host, what.revived, false, what.steps});
    if (of.holds.size() > most_holds) of.holds.pop_front();
    of.revivals += what.revived ? 1 : 0;
    set(of.steps, what.steps, sum::steps);
    set(of.copied, std::min(of.copied, what.steps), sum::copied);
    break;
  case heard_expert::news::given_up:
    end(of, time, host, false);
    break;
  case heard_expert::news::computed:
    of.rows += what.rows;
    of.requests += what.requests;
    of.bins.add(axis, time, sum::rows, static_cast<std::int64_t>(what.rows));
    if (what.steps > of.steps) set(of.steps, what.steps, sum::steps);
    break;
  case heard_expert::news::copied:
    if (what.steps > of.copied) set(of.copied, what.steps, sum::copied);
    break;
  }
}

void expert_grid::gone(std::int64_t time, std::uint32_t host) {
  for (auto& [where, of] : experts_) end(of, time, host, true);
}

void expert_grid::widen() {
  for (auto& [where, of] : experts_) of.bins.widen();
}

} // namespace shoal::scenarios
