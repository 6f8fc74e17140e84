#include "scenarios/runner/effects.hpp"

#include <algorithm>

namespace shoal::scenarios {

void effects::set_line(netem::machine_index machine, const line_state& line) {
  std::lock_guard guard(mutex_);
  lines_[machine] = line;
  apply_line(machine);
}

line_state effects::line_of(netem::machine_index machine) const {
  std::lock_guard guard(mutex_);
  return lines_.at(machine);
}

effects::number effects::add(modifier what) {
  const number made = next_++;
  if (what.what != kind::cut) of_machine_[what.machine].push_back(made);
  modifiers_.emplace(made, std::move(what));
  return made;
}

effects::number effects::throttle(netem::machine_index machine, line_part part, data_rate rate,
                                  double factor) {
  std::lock_guard guard(mutex_);
  modifier what{.what = kind::line,
                .machine = machine,
                .up = part != line_part::down,
                .down = part != line_part::up};
  what.rate = rate.bits_per_second;
  if (factor > 0) what.factor = factor;
  const auto made = add(what);
  apply_line(machine);
  return made;
}

effects::number effects::impair(netem::machine_index machine, netem::traffic_direction direction,
                                const netem::path_quality& how, data_rate rate) {
  std::lock_guard guard(mutex_);
  using netem::traffic_direction;
  modifier what{.what = kind::line,
                .machine = machine,
                .up = direction != traffic_direction::to,
                .down = direction != traffic_direction::from};
  what.rate = rate.bits_per_second;
  what.quality = how;
  const auto made = add(what);
  apply_line(machine);
  return made;
}

effects::number effects::cut(netem::cut what) {
  std::lock_guard guard(mutex_);
  return add({.what = kind::cut, .cut = world_.net().add_cut(std::move(what))});
}

effects::number effects::pause(netem::machine_index machine) {
  std::lock_guard guard(mutex_);
  const auto host = world_.net().host_on(machine);
  if (host != netem::no_host) world_.net().pause(host);
  return add({.what = kind::pause, .machine = machine, .host = host});
}

effects::number effects::clock(netem::machine_index machine, duration offset, double drift) {
  std::lock_guard guard(mutex_);
  const auto made = add({.what = kind::clock,
                         .machine = machine,
                         .offset = offset,
                         .since = world_.clock().now(),
                         .drift = drift});
  apply_clock(machine);
  return made;
}

void effects::undo(number which) {
  std::lock_guard guard(mutex_);
  const auto found = modifiers_.find(which);
  if (found == modifiers_.end()) return;
  const modifier was = found->second;
  modifiers_.erase(found);
  if (was.what == kind::cut) return world_.net().heal(was.cut);
  auto& others = of_machine_[was.machine];
  std::erase(others, which);
  switch (was.what) {
  case kind::line:
    apply_line(was.machine);
    break;
  case kind::clock:
    apply_clock(was.machine);
    break;
  case kind::pause:
    if (was.host != netem::no_host && std::none_of(others.begin(), others.end(), [&](number other) {
          const auto& m = modifiers_.at(other);
          return m.what == kind::pause && m.host == was.host;
        }))
      world_.net().resume(was.host);
    break;
  case kind::cut:
    break;
  }
  if (others.empty()) of_machine_.erase(was.machine);
}

void effects::apply_line(netem::machine_index machine) {
  const auto& base = lines_.at(machine);
  auto up = base.up.bits_per_second, down = base.down.bits_per_second;
  auto out = base.quality, in = base.quality;
  for (const auto which : of_machine_[machine]) {
    const auto& m = modifiers_.at(which);
    if (m.what != kind::line) continue;
    const auto limited = [&](double rate, double own) {
      return std::min({rate, own * m.factor, m.rate > 0 ? m.rate : rate});
    };
    if (m.up) up = limited(up, base.up.bits_per_second);
    if (m.down) down = limited(down, base.down.bits_per_second);
    if (m.up) out = netem::in_series({&out, &m.quality});
    if (m.down) in = netem::in_series({&in, &m.quality});
  }
  world_.net().set_rates(machine, {up}, {down});
  world_.net().set_line(machine, out, in);
}

void effects::apply_clock(netem::machine_index machine) {
  duration offset{};
  double drift = 0;
  for (const auto which : of_machine_[machine]) {
    const auto& m = modifiers_.at(which);
    if (m.what != kind::clock) continue;
    offset += m.offset + from_seconds(m.drift * to_seconds(world_.clock().now() - m.since));
    drift += m.drift;
  }
  world_.set_clock(machine, offset, drift);
}

} // namespace shoal::scenarios
