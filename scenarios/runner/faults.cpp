#include "scenarios/runner/faults.hpp"

#include "scenarios/runner/network_setup.hpp"
#include "scenarios/schema/hosts.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::scenarios {

fault_engine::fault_engine(world& in, effects& on, std::vector<fault> faults,
                           std::vector<fault_target> targets, run_seed seed, hooks what)
    : world_(in), effects_(on), targets_(std::move(targets)), hooks_(std::move(what)) {
  for (std::size_t i = 0; i < targets_.size(); ++i) target_of_[targets_[i].machine] = i;
  for (auto& f : faults) {
    state made{std::move(f), {}, stream(seed, "fault", faults_.size()), 0, {}};
    for (std::size_t i = 0; i < targets_.size(); ++i)
      if (matches(made.what, targets_[i])) made.selected.push_back(i);
    on_probes_ = on_probes_ || !made.what.on.empty();
    faults_.push_back(std::move(made));
  }
}

bool fault_engine::matches(const fault& what, const fault_target& target) const {
  const bool named = target.peer ? what.select.empty() || glob_match(what.select, target.name)
                                 : selects_shard(what.select, target.name);
  return named && (what.regions.empty() || std::find(what.regions.begin(), what.regions.end(),
                                                     target.region) != what.regions.end());
}

void fault_engine::schedule() {
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    const auto& f = faults_[i].what;
    if (f.at || f.every) world_.clock().at(f.at ? *f.at : *f.every, [this, i] { due(i); });
  }
}

void fault_engine::due(std::size_t index) {
  std::lock_guard guard(mutex_);
  if (ended_) return;
  auto& f = faults_[index];
  if (f.what.every) {
    const auto next = world_.clock().now() + *f.what.every;
    if (!f.what.until || next <= *f.what.until)
      world_.clock().at(next, [this, index] { due(index); });
  }
  if (f.what.probability < 1 && f.draws.uniform() >= f.what.probability) return;
  strike(index, choose(f));
}

/// Chooses as many of the selected hosts as the mode says. Candidates are running hosts, or stopped
/// hosts for `join`. Lines and clocks exist without a running host, so there `all` includes stopped
/// hosts.
std::vector<std::size_t> fault_engine::choose(state& f) {
  const bool about_life = f.what.kind == fault_kind::kill || f.what.kind == fault_kind::restart ||
                          f.what.kind == fault_kind::join || f.what.kind == fault_kind::pause;
  if (!about_life && f.what.mode == fault_mode::all) return f.selected;
  std::vector<std::uint32_t> there;
  for (const auto i : f.selected)
    if ((world_.net().host_on(targets_[i].machine) == netem::no_host) ==
        (f.what.kind == fault_kind::join))
      there.push_back(static_cast<std::uint32_t>(i));
  auto count = there.size();
  const auto share = [&](double of) {
    return static_cast<std::size_t>(std::llround(of * static_cast<double>(there.size())));
  };
  switch (f.what.mode) {
  case fault_mode::all:
    break;
  case fault_mode::one:
    count = std::min<std::size_t>(count, 1);
    break;
  case fault_mode::fixed:
    count = std::min(count, static_cast<std::size_t>(f.what.value));
    break;
  case fault_mode::fixed_percent:
    count = std::min(count, share(f.what.value));
    break;
  case fault_mode::random_max_percent:
    count = std::min(count, share(f.what.value * f.draws.uniform()));
    break;
  }
  if (f.what.mode != fault_mode::all) {
    there = netem::draw_some(std::move(there), count, f.draws);
    std::sort(there.begin(), there.end());
  }
  return {there.begin(), there.end()};
}

void fault_engine::reached(netem::host_index host, std::string_view point) {
  if (!on_probes_) return;
  std::lock_guard guard(mutex_);
  if (ended_) return;
  const auto found = target_of_.find(world_.net().machine_of(host));
  if (found == target_of_.end()) return;
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    auto& f = faults_[i];
    if (f.what.on != point ||
        !std::binary_search(f.selected.begin(), f.selected.end(), found->second))
      continue;
    if (!world_.net().alive(host)) return;
    if (f.what.until && world_.clock().now() > *f.what.until) continue;
    const auto times = ++f.reached;
    const bool drawn = f.what.probability < 1;
    if (drawn ? times < f.what.nth || f.draws.uniform() >= f.what.probability : times != f.what.nth)
      continue;
    strike(i, {found->second});
  }
}

void fault_engine::strike(std::size_t index, std::vector<std::size_t> whom) {
  const auto& f = faults_[index].what;
  if (whom.empty() && f.kind != fault_kind::partition) return;
  struck_ += whom.size();
  // Notify first, so that observers know the reason before a host dies.
  tell(index, true, whom);
  if (f.kind == fault_kind::partition) return partition(index, whom);
  if (f.kind == fault_kind::swizzle_clog) return clog(index, std::move(whom));
  for (const auto i : whom) strike_one(index, i);
}

void fault_engine::strike_one(std::size_t index, std::size_t whom) {
  const auto& f = faults_[index].what;
  const auto machine = targets_[whom].machine;
  switch (f.kind) {
  case fault_kind::join:
    if (world_.net().host_on(machine) == netem::no_host) hooks_.start(machine);
    return;
  case fault_kind::kill:
  case fault_kind::restart: {
    const auto running = world_.net().host_on(machine);
    if (running == netem::no_host) return; // on the wall clock, the host may have ended meanwhile
    world_.net().kill(running, f.scope == fault_scope::machine ? netem::kill_scope::machine
                                                               : netem::kill_scope::process);
    if (f.kind == fault_kind::restart)
      world_.clock().at(world_.clock().now() + f.downtime, [this, machine] {
        if (world_.net().host_on(machine) == netem::no_host) hooks_.start(machine);
      });
    return;
  }
  case fault_kind::pause:
    return keep(index, whom, effects_.pause(machine), f.lasts);
  case fault_kind::throttle:
    return keep(index, whom, effects_.throttle(machine, f.line, f.rate, f.factor), f.lasts);
  case fault_kind::netem:
    return keep(index, whom, effects_.impair(machine, f.direction, quality_of(f.path), f.rate),
                f.lasts);
  case fault_kind::blackhole:
    return keep(index, whom, effects_.cut(netem::cut::isolating({machine}, f.direction)), f.lasts);
  case fault_kind::clock:
    return keep(index, whom, effects_.clock(machine, f.ahead - f.behind, f.drift), f.lasts);
  case fault_kind::partition:
  case fault_kind::swizzle_clog:
    return;
  }
}

void fault_engine::partition(std::size_t index, const std::vector<std::size_t>& whom) {
  auto& f = faults_[index];
  std::vector<std::uint32_t> machines;
  for (const auto i : whom) machines.push_back(targets_[i].machine);
  netem::cut made;
  switch (f.what.shape) {
  case partition_shape::selected:
    made = netem::cut::between(machines, f.what.cut);
    break;
  case partition_shape::minority_third:
    made = netem::cut::between(
        netem::draw_some(machines, machines.empty() ? 0 : (machines.size() - 1) / 3, f.draws),
        f.what.cut);
    break;
  case partition_shape::halves:
    made =
        netem::cut::between(netem::draw_some(machines, machines.size() / 2, f.draws), f.what.cut);
    break;
  case partition_shape::majorities_ring:
    made = netem::cut::majorities_ring(netem::draw_some(machines, machines.size(), f.draws));
    break;
  case partition_shape::regions: {
    std::map<std::string, std::uint32_t> regions;
    std::vector<std::uint32_t> sides;
    for (const auto& target : targets_) {
      const auto side =
          regions.try_emplace(target.region, static_cast<std::uint32_t>(regions.size() + 1))
              .first->second;
      if (target.machine >= sides.size())
        sides.resize(target.machine + 1, netem::cut::nobody_elses);
      sides[target.machine] = side;
    }
    made = netem::cut::apart(std::move(sides), netem::traffic_direction::both);
    break;
  }
  }
  keep(index, everybody, effects_.cut(std::move(made)), f.what.lasts);
}

/// Clogs hosts one after another during the first half, in a random order. Unclogs them in another
/// random order during the second half.
/// Source: swizzled clogging, in the testing chapter of FoundationDB's documentation.
void fault_engine::clog(std::size_t index, std::vector<std::size_t> whom) {
  auto& f = faults_[index];
  const auto shuffled = [&] {
    std::vector<std::uint32_t> order(whom.begin(), whom.end());
    const auto count = order.size();
    return netem::draw_some(std::move(order), count, f.draws);
  };
  const auto first = shuffled(), last = shuffled();
  const auto step = f.what.lasts / static_cast<std::int64_t>(2 * whom.size());
  const auto now = world_.clock().now();
  std::map<std::uint32_t, duration> end;
  for (std::size_t i = 0; i < last.size(); ++i)
    end[last[i]] = now + f.what.lasts / 2 + step * static_cast<std::int64_t>(i + 1);
  for (std::size_t i = 0; i < first.size(); ++i)
    world_.clock().at(now + step * static_cast<std::int64_t>(i), [this, index, i = first[i],
                                                                  until = end.at(first[i])] {
      std::lock_guard guard(mutex_);
      if (ended_) return;
      const auto cut =
          effects_.cut(netem::cut::isolating({targets_[i].machine}, faults_[index].what.direction));
      keep(index, i, cut, until - world_.clock().now());
    });
}

void fault_engine::keep(std::size_t index, std::size_t key, effects::number made, duration time) {
  auto& here = faults_[index].lasts[key];
  // The new effect is in force already, so undoing the old one leaves no gap.
  effects_.undo(here.effect);
  here = {made, next_number_++};
  if (time <= duration{}) return;
  world_.clock().at(world_.clock().now() + time,
                    [this, index, key, number = here.number] { over(index, key, number); });
}

void fault_engine::over(std::size_t index, std::size_t key, std::uint64_t number) {
  std::lock_guard guard(mutex_);
  auto& lasts = faults_[index].lasts;
  const auto found = lasts.find(key);
  if (found == lasts.end() || found->second.number != number) return;
  const auto done = found->second.effect;
  lasts.erase(found);
  effects_.undo(done);
  tell(index, false, key == everybody ? std::vector<std::size_t>{} : std::vector<std::size_t>{key});
}

void fault_engine::end() {
  std::lock_guard guard(mutex_);
  ended_ = true;
  for (auto& f : faults_) {
    for (auto& [key, what] : f.lasts) effects_.undo(what.effect);
    f.lasts.clear();
  }
}

void fault_engine::tell(std::size_t index, bool begins, const std::vector<std::size_t>& whom) {
  if (!hooks_.note) return;
  fault_note note{index, faults_[index].what.kind, begins, {}};
  for (const auto i : whom) note.hosts.push_back(targets_[i].name);
  hooks_.note(note);
}

} // namespace shoal::scenarios
