#include "tests/e2e/support/swarm.hpp"

#include "actors/conduct/conducts.hpp"
#include "actors/training/observations.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/schema/load.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace shoal::e2e {

std::string swarm::yaml() const {
  auto out = fmt::format(
      "seed: {}\n"
      "stop_time: {}\n"
      "network: {{default_delay: 20ms, default_jitter: 5ms, detection_time: 2s{}}}\n"
      "devices:\n"
      "  fast: {{samples_per_second: 40, jitter: 10%, step_time: 10ms}}\n"
      "peers:\n"
      "  p: {{count: {}, up: {}, down: {}, device: fast, start_spacing: 10ms{}{}}}\n{}"
      "data: {{prefetch_samples: 32{}}}\n"
      "workload: {{kind: {}, parameters: {}{}{}}}\n"
      "training: {{{}micro_batch: 4, epochs: {}, max_refresh: 2s, record_lifetime: 6s, "
      "optimizer: {{kind: sgd, learning_rate: 0.1}}{}}}\n"
      "averaging: {{matchmaking_time: 2s, round_timeout: 20s, sender_timeout: 3s, chunk_size: "
      "2KiB{}}}\n"
      "record: {{events: none}}\n",
      seed, stop_time, more_network, peers, up, down, open.empty() ? "" : ", ", open, late, data,
      kind, parameters, kind == "timing" ? ", sample_size: 64B" : "", workload,
      training.find("method: moshpit") == std::string::npos &&
              training.find("method: diloco") == std::string::npos
          ? "target_batch: 32, "
          : "",
      epochs, training, averaging);
  if (!faults.empty()) out += "faults:\n";
  for (const auto& fault : faults) out += "  - " + fault + "\n";
  return out + more;
}

std::string finished_run::text(const std::string& yaml) const {
  std::string out;
  for (const auto& error : errors) out += error + "\n";
  out += fmt::format("epochs {}, rounds ok {} partial {} split {} failed {}, at {} s\n",
                     summary().epochs, summary().rounds.ok, summary().rounds.partial,
                     summary().rounds.split, summary().rounds.failed, summary().virtual_seconds);
  for (const auto& [name, count] : summary().rounds.by_reason)
    out += fmt::format("  {}: {}\n", name, count);
  return out + yaml;
}

void under_each_attack(const std::string& swarm, const finished_run& honest,
                       const std::function<finished_run(const std::string&)>& run) {
  double slowest = 0;
  std::string which;
  for (const auto& each : actors::conducts().all()) {
    if (each.kind != actors::conduct_kind::attack || each.changes_labels || each.of_shards)
      continue;
    CAPTURE(each.name);
    const auto seconds = run(each.name).summary().virtual_seconds;
    if (seconds <= slowest) continue;
    slowest = seconds;
    which = each.name;
  }
  MESSAGE(swarm, ": the slowest is ", which, ": ", slowest, " s, and ",
          honest.summary().virtual_seconds, " s without an attack");
}

scenarios::summary::check_totals rule(const scenarios::summary& from, const std::string& name) {
  for (const auto& [rule_name, totals] : from.invariants)
    if (rule_name == name) return totals;
  throw std::runtime_error("no such invariant: " + name);
}

finished_run run_yaml(const std::string& yaml, std::uint64_t epochs,
                      scenarios::runner_options options) {
  auto loaded = scenarios::load_text(yaml, "swarm.yaml");
  if (!loaded.value) {
    std::string text;
    for (const auto& error : loaded.errors) text += scenarios::render(error);
    throw std::runtime_error(text + yaml);
  }
  finished_run out;
  options.baseline = false;
  if (options.threads == 0) options.threads = 1;
  auto also = std::move(options.on_observation);
  options.on_observation = [&](const actors::host& from, const actors::observation& seen) {
    if (also) also(from, seen);
    auto at = [&](std::uint64_t epoch, const actors::state_id& state) {
      out.epoch_of[from.id()] = epoch;
      out.state_of[from.id()] = state.hex();
    };
    if (auto* step = actors::get_if<actors::stepped>(&seen)) {
      ++out.stepped;
      at(step->epoch, step->after);
    } else if (auto* adopted = actors::get_if<actors::adopted>(&seen)) {
      ++out.adopted;
      at(adopted->epoch, adopted->state);
    } else if (auto* phase = actors::get_if<actors::phase_changed>(&seen)) {
      at(phase->epoch, phase->state);
    } else if (auto* bad = actors::get_if<actors::misbehaved>(&seen)) {
      if (out.misbehaved++ == 0)
        out.first_misbehaviour =
            fmt::format("{} says of {:x}: {}", from.name(), bad->culprit, bad->why);
    }
  };
  const auto hosts = scenarios::expand_hosts(*loaded.value);
  const bool attacked = std::any_of(
      hosts.begin(), hosts.end(), [](const auto& host) { return actors::is_attack(host.conduct); });
  auto runner = scenarios::runner::prepare(std::move(*loaded.value), std::move(options));
  if (!runner) throw std::runtime_error(runner.error());
  auto outcome = (*runner)->run();
  if (!outcome) throw std::runtime_error(outcome.error());
  out.outcome = std::move(*outcome);
  const auto& summary = out.outcome.summary;
  for (const auto& [name, check] : summary.invariants)
    if (check.violated > 0)
      out.errors.push_back(fmt::format("{} violated {} times, first {}", name, check.violated,
                                       check.first_violation));
  if (summary.epochs < epochs)
    out.errors.push_back(fmt::format("only {} of {} epochs were done", summary.epochs, epochs));
  // The invariant no_honest_accused judges what honest hosts say of attackers.
  if (out.misbehaved > 0 && !attacked)
    out.errors.push_back(fmt::format("{} messages of correct peers were refused, first {}",
                                     out.misbehaved, out.first_misbehaviour));
  return out;
}

} // namespace shoal::e2e
