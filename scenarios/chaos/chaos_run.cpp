#include "scenarios/chaos/chaos_run.hpp"

#include "actors/host.hpp"
#include "actors/observe.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/json_text.hpp"
#include "scenarios/observe/run_listener.hpp"
#include "scenarios/runner/runner.hpp"
#include "scenarios/schema/load.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <prometheus/registry.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>

namespace shoal::scenarios {

namespace {

/// Epochs that a peer may be behind at the end of a case. Peers do not stop at the same point of an
/// epoch, and a peer may still be downloading.
constexpr std::uint64_t most_behind = 6;

double core_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

/// The last known state of a host.
struct last_seen {
  bool there = false;
  std::uint64_t epoch = 0;
  duration moved{}; // when the host last changed its state
  std::string phase, round = "no round yet";
};

class watcher final : public silent_listener {
public:
  std::map<std::string, last_seen, std::less<>> hosts;
  std::map<std::string, std::uint64_t> faults;
  std::uint64_t refused = 0, bans = 0;
  std::string first_refused;

  void observe(const actors::host& from, const actors::observation& seen) {
    const auto at = [&](std::uint64_t epoch) {
      auto& who = of(from.name());
      who.epoch = epoch;
      who.moved = now_;
    };
    if (const auto* step = actors::get_if<actors::stepped>(&seen)) {
      at(step->epoch);
    } else if (const auto* adopted = actors::get_if<actors::adopted>(&seen)) {
      at(adopted->epoch);
    } else if (const auto* bad = actors::get_if<actors::misbehaved>(&seen)) {
      if (refused++ == 0)
        first_refused = fmt::format("{} says of {:x}: {}", from.name(), bad->culprit, bad->why);
    } else if (actors::get_if<actors::member_banned>(&seen) != nullptr) {
      ++bans;
    }
  }

  void metrics_row(std::string_view row) override {
    // Rows come once a second and begin with the time.
    now_ = std::max(now_, std::chrono::duration_cast<duration>(
                              std::chrono::duration<double>(std::strtod(row.data(), nullptr))));
  }
  void host_started(duration time, std::string_view host) override {
    reach(time);
    of(host) = {};
    of(host).there = true;
  }
  void host_ended(duration time, std::string_view host, std::string_view) override {
    reach(time);
    of(host).there = false;
  }
  void phase(duration time, std::string_view host, std::string_view phase) override {
    reach(time);
    of(host).phase = phase;
  }
  void round_ended(duration time, const heard_end& what) override {
    reach(time);
    of(what.host).round = fmt::format("{} ({})", what.outcome, what.reason);
  }
  void fault(duration, std::uint64_t, std::string_view action, bool begins,
             std::span<const std::string> struck) override {
    if (begins) faults[std::string(action)] += struck.size();
  }

private:
  last_seen& of(std::string_view host) {
    const auto found = hosts.find(host);
    return found != hosts.end() ? found->second : hosts.emplace(host, last_seen{}).first->second;
  }
  void reach(duration time) { now_ = std::max(now_, time); }

  duration now_{};
};

} // namespace

chaos_result run_case(const chaos_case& what, const std::string& conduct,
                      const std::optional<run_branch>& branch) {
  chaos_result out;
  const auto begun = core_seconds();
  auto loaded = load_text(what.yaml(), fmt::format("chaos-{}.yaml", what.seed));
  if (!loaded.value) {
    for (const auto& error : loaded.errors) out.problems.push_back("no scenario: " + render(error));
    return out;
  }
  const auto job = job_before_following(*loaded.value);
  watcher seen;
  runner_options options;
  options.baseline = false;
  options.threads = 1;
  options.conduct = conduct;
  if (branch) options.branches = {*branch};
  options.on_moment = [&](const run_moment&) { out.branched = true; };
  options.listener = &seen;
  std::shared_ptr<prometheus::Registry> values;
  options.on_metrics = [&](const std::shared_ptr<prometheus::Registry>& them) { values = them; };
  options.on_observation = [&](const actors::host& from, const actors::observation& what) {
    seen.observe(from, what);
  };
  options.on_failpoint = [&](std::string_view branch) { ++out.failpoints[std::string(branch)]; };
  auto made = runner::prepare(std::move(*loaded.value), std::move(options));
  if (!made) {
    out.problems.push_back("no run: " + made.error());
    return out;
  }
  auto outcome = (*made)->run();
  if (!outcome) {
    out.problems.push_back("the run stopped: " + outcome.error());
    return out;
  }
  const auto& summary = outcome->summary;
  out.virtual_seconds = summary.virtual_seconds;
  out.core_seconds = core_seconds() - begun;
  out.epochs = summary.epochs;
  out.faults = seen.faults;
  out.reasons = summary.rounds.by_reason;
  out.accusations = seen.refused;
  out.bans = seen.bans;
  out.event_hash = summary.event_hash.value_or("");
  for (const auto& family : values->Collect())
    if (family.name == "shoal_points_reached_total")
      for (const auto& metric : family.metric)
        out.points[metric.label.front().value] = static_cast<std::uint64_t>(metric.counter.value);

  for (const auto& [name, check] : summary.invariants)
    if (check.violated > 0) {
      const double at = to_seconds(check.first_time);
      out.violated_seconds = std::min(out.violated_seconds.value_or(at), at);
      out.problems.push_back(fmt::format("{} violated {} times, first {}", name, check.violated,
                                         check.first_violation));
    }
  // An attacker's messages are refused. The invariant no_honest_accused judges the accusations.
  const bool hostile = std::any_of(what.groups.begin(), what.groups.end(),
                                   [](const auto& one) { return one.name == attacker_group; });
  if (seen.refused > 0 && !hostile)
    out.problems.push_back(fmt::format("{} messages of correct peers were refused, first {}",
                                       seen.refused, seen.first_refused));

  const auto from = what.times.storm + what.times.healing - what.times.bound - job;
  std::uint64_t ahead = 0;
  for (const auto& [name, who] : seen.hosts) ahead = std::max(ahead, who.epoch);
  for (const auto& [name, who] : seen.hosts) {
    if (!who.there || name.starts_with("aux-") || name.starts_with("shard-") ||
        name.starts_with(attacker_group))
      continue;
    if (who.moved < from ||
        (who.epoch + most_behind < ahead && who.moved < from + what.times.bound * 2 / 3))
      out.problems.push_back(fmt::format("not healed: {} is at epoch {} since {:.1f} s, while "
                                         "others are at {}; it is {}, its last round was {}",
                                         name, who.epoch,
                                         std::chrono::duration<double>(who.moved).count(), ahead,
                                         who.phase, who.round));
  }
  return out;
}

chaos_case shrink(chaos_case what, const std::function<bool(const chaos_case&)>& fails,
                  unsigned most) {
  const auto still = [&](const chaos_case& smaller) {
    if (most == 0) return false;
    --most;
    return fails(smaller);
  };
  if (what.failpoints > 0) {
    auto smaller = what;
    smaller.failpoints = 0;
    if (still(smaller)) what = std::move(smaller);
  }
  for (bool again = true; again;) {
    again = false;
    // The shrinker leaves out halves first, then single pieces.
    for (std::size_t size = std::max<std::size_t>(what.faults.size() / 2, 1); size > 0; size /= 2)
      for (std::size_t at = 0; at + size <= what.faults.size();) {
        auto smaller = what;
        smaller.faults.erase(smaller.faults.begin() + static_cast<std::ptrdiff_t>(at),
                             smaller.faults.begin() + static_cast<std::ptrdiff_t>(at + size));
        if (still(smaller)) {
          what = std::move(smaller);
          again = true;
        } else {
          at += size;
        }
      }
    for (std::size_t i = 1; i < what.groups.size();) {
      auto smaller = what;
      if (smaller.groups[i].name == "aux") smaller.auxiliary = false;
      smaller.groups.erase(smaller.groups.begin() + static_cast<std::ptrdiff_t>(i));
      if (still(smaller)) {
        what = std::move(smaller);
        again = true;
      } else {
        ++i;
      }
    }
    for (auto& group : what.groups)
      while (group.count > 1) {
        --group.count;
        if (still(what)) {
          again = true;
          continue;
        }
        ++group.count;
        break;
      }
  }
  return what;
}

std::string to_json(const chaos_result& what) {
  return json_text(nlohmann::ordered_json{
      {"problems", what.problems},
      {"virtual_seconds", what.virtual_seconds},
      {"core_seconds", what.core_seconds},
      {"epochs", what.epochs},
      {"faults", what.faults},
      {"points", what.points},
      {"failpoints", what.failpoints},
      {"reasons", what.reasons},
      {"accusations", what.accusations},
      {"bans", what.bans},
      {"event_hash", what.event_hash},
      {"violated_seconds", what.violated_seconds ? nlohmann::ordered_json(*what.violated_seconds)
                                                 : nlohmann::ordered_json()},
      {"branched", what.branched}});
}

result<chaos_result> chaos_result_from_json(std::string_view text) {
  try {
    const auto from = parse_json<nlohmann::ordered_json>(text);
    chaos_result out;
    from.at("problems").get_to(out.problems);
    from.at("virtual_seconds").get_to(out.virtual_seconds);
    from.at("core_seconds").get_to(out.core_seconds);
    from.at("epochs").get_to(out.epochs);
    from.at("faults").get_to(out.faults);
    from.at("points").get_to(out.points);
    from.at("failpoints").get_to(out.failpoints);
    from.at("reasons").get_to(out.reasons);
    from.at("accusations").get_to(out.accusations);
    from.at("bans").get_to(out.bans);
    from.at("event_hash").get_to(out.event_hash);
    if (const auto& at = from.at("violated_seconds"); !at.is_null())
      out.violated_seconds = at.get<double>();
    from.at("branched").get_to(out.branched);
    return out;
  } catch (const nlohmann::json::exception& wrong) {
    return failure{fmt::format("not a result of chaos: {}", wrong.what())};
  }
}

} // namespace shoal::scenarios
