#include "scenarios/promote/preflight.hpp"

#include "scenarios/observe/output_text.hpp"
#include "scenarios/promote/promoted_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shoal::scenarios {

result<prediction> preflight(const scenario& what, const inventory& on, std::uint64_t values,
                             preflight_options options) {
  auto simulated = what;
  simulated.world = "sim";
  simulated.training.start_from.clear();
  const auto planned = what.training.epochs;
  runner_options run;
  run.baseline = false;
  run.sizes_only = true;
  run.end_at_epoch = options.epochs;
  run.out = options.out;
  run.build = options.build;
  run.on_status = std::move(options.on_status);
  run.interrupted = std::move(options.interrupted);
  auto runner = runner::prepare(simulated, std::move(run));
  if (!runner) return failure{runner.error()};
  auto outcome = (*runner)->run();
  if (!outcome) return failure{outcome.error()};
  if (outcome->interrupted) return failure{"the simulation was interrupted"};
  prediction out;
  out.run = std::move(outcome->summary);
  if (out.run.epochs == 0) {
    std::string why;
    for (const auto& [reason, count] : out.run.rounds.by_reason)
      why += fmt::format("{}{} {}", why.empty() ? ": " : ", ", count, reason);
    return failure{fmt::format("in {} of simulation not one round succeeded{}",
                               to_string(what.stop_time), why)};
  }
  out.reached = planned > 0 && out.run.epochs >= planned;
  out.seconds = out.run.virtual_seconds;
  if (planned == 0)
    out.seconds = to_seconds(what.stop_time);
  else if (!out.reached)
    out.seconds *= static_cast<double>(planned) / static_cast<double>(out.run.epochs);
  for (const auto& [name, host] : on.hosts) {
    out.cost += host.price_per_hour * out.seconds / 3600;
    if (!host.shard && host.samples_per_second > 0)
      out.hosts.push_back({name, memory_of_node(host, values), host.memory.bytes});
  }
  return out;
}

std::string table(const prediction& what, const scenario& of) {
  const auto& run = what.run;
  const auto bytes = run.bytes_sent;
  const auto epochs = std::max<std::uint64_t>(run.epochs, 1);
  std::string out;
  const auto line = [&](const char* name, const std::string& text) {
    out += fmt::format("  {:<12} {}\n", name, text);
  };
  line("rounds",
       fmt::format("{}{} ok, {} partial, {} failed",
                   run.rounds.mean_seconds
                       ? fmt::format("{:.2f} s on average; ", *run.rounds.mean_seconds)
                       : "",
                   run.rounds.ok, run.rounds.partial, run.rounds.failed + run.rounds.split));
  line("training", fmt::format("{:.1f} samples/s, an epoch every {:.1f} s",
                               static_cast<double>(run.samples) / run.virtual_seconds,
                               run.virtual_seconds / static_cast<double>(epochs)));
  line("sent", fmt::format("{} an epoch: averaging {}, data {}, state {}, control {}",
                           bytes_text((bytes.data + bytes.averaging + bytes.state + bytes.control) /
                                      epochs),
                           bytes_text(bytes.averaging / epochs), bytes_text(bytes.data / epochs),
                           bytes_text(bytes.state / epochs), bytes_text(bytes.control / epochs)));
  const auto worst =
      std::max_element(what.hosts.begin(), what.hosts.end(), [](const auto& a, const auto& b) {
        return static_cast<double>(a.memory_bytes) *
                   static_cast<double>(std::max<std::uint64_t>(b.has_bytes, 1)) <
               static_cast<double>(b.memory_bytes) *
                   static_cast<double>(std::max<std::uint64_t>(a.has_bytes, 1));
      });
  if (worst != what.hosts.end())
    line("memory", fmt::format("{} on {}{}", bytes_text(worst->memory_bytes), worst->name,
                               worst->has_bytes > 0
                                   ? fmt::format(" of {}, the tightest of {}",
                                                 bytes_text(worst->has_bytes), what.hosts.size())
                                   : ""));
  if (of.training.epochs > 0)
    line("time",
         fmt::format("{} to epoch {}{}", to_string(from_seconds(std::round(what.seconds))),
                     of.training.epochs,
                     what.reached ? "" : fmt::format(", extrapolated from {}", run.epochs)));
  else
    line("time",
         fmt::format("{}, the scenario's stop_time; about {:.0f} epochs", to_string(of.stop_time),
                     what.seconds / run.virtual_seconds * static_cast<double>(run.epochs)));
  if (what.cost > 0) line("cost", fmt::format("{:.2f}, of all hosts for that time", what.cost));
  return out;
}

} // namespace shoal::scenarios
