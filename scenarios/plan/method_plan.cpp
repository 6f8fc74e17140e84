#include "scenarios/plan/method_plan.hpp"

#include "kernels/base/json_text.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/observe/output_text.hpp"
#include "scenarios/plan/candidates.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/roles/role.hpp"
#include "scenarios/schema/load.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <set>

namespace shoal::scenarios {

namespace {

std::string label(const plan_row& row) {
  return row.variant.empty() ? row.method : row.method + ", " + row.variant;
}

/// The need that fills its group's memory most. Needs of unknown memory come last.
std::optional<memory_need> tightest(const std::vector<memory_need>& needs) {
  const auto fill = [](const memory_need& one) {
    return one.has > 0 ? static_cast<double>(one.bytes) / static_cast<double>(one.has)
                       : -1 / (1 + static_cast<double>(one.bytes));
  };
  const auto most = std::max_element(
      needs.begin(), needs.end(), [&](const auto& a, const auto& b) { return fill(a) < fill(b); });
  return most == needs.end() ? std::nullopt : std::optional(*most);
}

/// One way to give the roles.
plan_row row_of(const plan_candidate& from, const std::vector<std::string>& roles,
                const std::string& file, const std::vector<std::string>& sets) {
  plan_row out;
  out.method = from.method;
  out.variant = from.variant;
  out.sets = from.sets;
  out.sets.insert(out.sets.end(), roles.begin(), roles.end());
  auto all = sets;
  all.insert(all.end(), out.sets.begin(), out.sets.end());
  auto loaded = load(file, all);
  if (!loaded.value) {
    out.impossible =
        loaded.errors.empty() ? "the scenario cannot be read" : loaded.errors.front().message;
    return out;
  }
  out.what = std::move(loaded.value);
  out.memory = tightest(memory_needs_of(*out.what));
  auto predicted = out.what->training.method.definition().speed(*out.what);
  if (!predicted)
    out.impossible = predicted.error();
  else if (out.memory && !out.memory->fits())
    out.impossible =
        fmt::format("a host of '{}' needs {} for {}, and has {}", out.memory->group,
                    bytes_text(out.memory->bytes), out.memory->what, bytes_text(out.memory->has));
  else
    out.predicted = std::move(*predicted);
  return out;
}

std::vector<std::string> notes_of(const scenario& what) {
  std::vector<std::string> out;
  const auto any_group = [&](auto has) {
    return std::any_of(what.peers.begin(), what.peers.end(), has);
  };
  if (!what.faults.empty()) out.emplace_back("faults are left out of the predictions");
  if (!what.network.shared_links.empty())
    out.emplace_back("shared links are left out of the predictions");
  if (any_group([](const peer_group& g) { return !g.churn.trace.empty(); }))
    out.emplace_back("churn of a trace is left out of the predictions");
  else if (any_group([](const peer_group& g) { return churns(g.churn); }))
    out.emplace_back(
        "churn counts as the share of its time in which a host is there; the predictions "
        "leave out the cost of departures and returns");
  if (any_group([](const peer_group& g) { return g.over_time != over_time_options{}; }))
    out.emplace_back("changes over time are left out of the predictions");
  if (any_group([](const peer_group& g) { return g.access.loss > 0; }))
    out.emplace_back("packet loss is left out of the predictions");
  std::set<std::string> unknown;
  for (const auto& group : what.peers)
    if (group.role.definition().trains)
      if (const auto device = what.devices.find(group.device);
          device != what.devices.end() && device->second.memory.bytes == 0)
        unknown.insert(group.device);
  if (!unknown.empty())
    out.push_back(fmt::format("nothing is said about the memory of {}: devices.{}.memory=8GiB, for "
                              "example",
                              fmt::join(unknown, ", "), *unknown.begin()));
  return out;
}

/// The times at which the swarm reached its steps, and the samples between them.
class step_times final : public silent_listener {
public:
  struct point {
    double seconds = 0;
    std::uint64_t epoch = 0, samples = 0; ///< samples computed on the state of the epoch
  };
  const std::vector<point>& points() const noexcept { return points_; }

  void epoch_rows(std::string_view rows) override {
    while (!rows.empty()) {
      const auto line = rows.substr(0, rows.find('\n'));
      rows.remove_prefix(std::min(rows.size(), line.size() + 1));
      unsigned long long epoch = 0, samples = 0;
      double seconds = 0;
      if (std::sscanf(std::string(line).c_str(), "%llu,%lf,%llu", &epoch, &seconds, &samples) == 3)
        points_.push_back({seconds, epoch, samples});
    }
  }

private:
  std::vector<point> points_;
};

void run_row(plan_row& row, const plan_run_options& options, bool& interrupted) {
  auto what = *row.what;
  what.world = "sim";
  what.training.start_from.clear();
  what.expect.clear();
  what.record.exports.clear();
  // Twice the time that was predicted is enough.
  const auto samples = samples_between_rounds(what);
  const double wanted = samples * static_cast<double>(options.epochs + 1);
  what.stop_time = std::max(from_seconds(60 + 4 * wanted / row.predicted.samples_per_second),
                            duration{std::chrono::minutes(5)});
  what.training.epochs = 0;
  step_times times;
  runner_options run;
  run.baseline = false;
  run.sizes_only = true;
  run.end_at_epoch = options.epochs + 1;
  run.interrupted = options.interrupted;
  run.listener = &times;
  auto runner = runner::prepare(what, std::move(run));
  if (!runner) {
    row.not_measured = runner.error();
    return;
  }
  auto outcome = (*runner)->run();
  if (!outcome) {
    row.not_measured = outcome.error();
    return;
  }
  interrupted = outcome->interrupted;
  const auto& points = times.points();
  const auto first = std::find_if(points.begin(), points.end(),
                                  [](const auto& point) { return point.epoch >= 1; });
  if (first == points.end() || points.back().epoch <= first->epoch) {
    row.not_measured = fmt::format("{} steps in {} of simulation", outcome->summary.epochs,
                                   rough_time(outcome->summary.virtual_seconds));
    return;
  }
  // Peers with parameters of their own are at different steps at one time. So all of their samples
  // count, from the beginning of the run on.
  const bool apart = traits_of(what).averages_parameters;
  double computed = 0;
  for (auto point = apart ? points.begin() : first; point != points.end(); ++point)
    if (apart || point + 1 != points.end()) computed += static_cast<double>(point->samples);
  row.measured = computed / (apart ? outcome->summary.virtual_seconds
                                   : points.back().seconds - first->seconds);
}

/// To three digits: '4.74', '63.3', '3130'.
std::string speed_text(double samples_per_second) {
  if (samples_per_second < 1000) return fmt::format("{:.3g}", samples_per_second);
  const double last = std::pow(10, std::floor(std::log10(samples_per_second)) - 2);
  return fmt::format("{:.0f}", std::round(samples_per_second / last) * last);
}

/// An argument as a shell takes it.
std::string quoted(const std::string& argument) {
  const bool plain = std::all_of(argument.begin(), argument.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("._=-/").find(c) != std::string_view::npos;
  });
  return plain ? argument : "'" + argument + "'";
}

} // namespace

result<method_plan> plan_methods(const scenario& what, const std::string& file,
                                 const std::vector<std::string>& sets, std::uint64_t samples) {
  if (!what.program.definition().on_runner() || what.program.name() != "training")
    return failure{fmt::format("the scenario is one of the program '{}', and only training has "
                               "methods to choose from",
                               what.program.name())};
  if (std::none_of(what.peers.begin(), what.peers.end(), [](const peer_group& group) {
        return group.role.definition().trains && group.count > 0;
      }))
    return failure{"no host trains: 'peers' has no group that computes"};
  method_plan out;
  out.notes = notes_of(what);
  out.samples = samples > 0 ? samples
                : what.training.epochs > 0
                    ? static_cast<std::uint64_t>(samples_between_rounds(what) *
                                                 static_cast<double>(what.training.epochs))
                    : 1'000'000;
  for (const auto& candidate : plan_candidates(what, file, sets)) {
    std::optional<plan_row> best;
    for (const auto& roles : candidate.roles) {
      auto row = row_of(candidate, roles, file, sets);
      if (!best || (best->impossible.empty()
                        ? row.predicted.samples_per_second > best->predicted.samples_per_second
                        : row.impossible.empty()))
        best = std::move(row);
    }
    if (best) out.rows.push_back(std::move(*best));
  }
  std::stable_sort(out.rows.begin(), out.rows.end(), [](const auto& a, const auto& b) {
    return a.predicted.samples_per_second > b.predicted.samples_per_second;
  });
  return out;
}

result<void> run_plan(method_plan& plan, const plan_run_options& options) {
  for (auto& row : plan.rows) {
    if (!row.impossible.empty()) continue;
    if (options.on_row) options.on_row(row);
    bool interrupted = false;
    run_row(row, options, interrupted);
    if (interrupted) return failure{"interrupted"};
  }
  return {};
}

std::string table(const method_plan& plan) {
  const bool runs = std::any_of(plan.rows.begin(), plan.rows.end(), [](const auto& row) {
    return row.measured || !row.not_measured.empty();
  });
  std::size_t name = 6, limit = 5;
  for (const auto& row : plan.rows) {
    name = std::max(name, label(row).size());
    limit = std::max(limit, row.predicted.limit.size());
  }
  auto out = fmt::format("  {:<{}}  {:>9}  {}{:>12}  {}\n", "method", name, "samples/s",
                         runs ? " measured  ratio  " : "", "time", "limit");
  for (const auto& row : plan.rows) {
    if (!row.impossible.empty()) continue;
    const auto speed = row.predicted.samples_per_second;
    std::string measured;
    if (runs)
      measured = row.measured ? fmt::format("{:>9}  {:>5.2f}  ", speed_text(*row.measured),
                                            speed / *row.measured)
                              : fmt::format("{:>9}  {:>5}  ", "none", "");
    out += fmt::format("  {:<{}}  {:>9}  {}{:>12}  {}\n", label(row), name, speed_text(speed),
                       measured, rough_time(static_cast<double>(plan.samples) / speed),
                       row.predicted.limit);
  }
  out += fmt::format("time: to {} samples\n\n", plan.samples);
  for (const auto& row : plan.rows) {
    if (!row.impossible.empty()) {
      out += fmt::format("{}: impossible: {}\n", label(row), row.impossible);
      continue;
    }
    out += fmt::format("{}: {}\n", label(row), row.predicted.reason);
    if (row.memory)
      out += fmt::format(
          "  memory: a host of '{}' needs {} for {}{}\n", row.memory->group,
          bytes_text(row.memory->bytes), row.memory->what,
          row.memory->has > 0 ? fmt::format(", and has {}", bytes_text(row.memory->has)) : "");
    if (!row.not_measured.empty())
      out += fmt::format("  the simulation gave no speed: {}\n", row.not_measured);
    std::string change;
    for (const auto& set : row.sets) change += " --set " + quoted(set);
    out += fmt::format("  change:{}\n", change.empty() ? " none" : change);
  }
  if (!plan.notes.empty()) out += "\n";
  for (const auto& note : plan.notes) out += fmt::format("note: {}\n", note);
  return out;
}

std::string to_json(const method_plan& plan) {
  using json = nlohmann::ordered_json;
  json out{{"samples", plan.samples}, {"rows", json::array()}, {"notes", plan.notes}};
  for (const auto& row : plan.rows) {
    json one{{"method", row.method}, {"variant", row.variant}, {"set", row.sets}};
    const bool possible = row.impossible.empty();
    one["samples_per_second"] = possible ? json(row.predicted.samples_per_second) : json(nullptr);
    one["seconds"] =
        possible ? json(static_cast<double>(plan.samples) / row.predicted.samples_per_second)
                 : json(nullptr);
    one["limit"] = row.predicted.limit;
    one["reason"] = possible ? row.predicted.reason : row.impossible;
    one["measured"] = row.measured ? json(*row.measured) : json(nullptr);
    if (row.memory)
      one["memory"] = {{"group", row.memory->group},
                       {"what", row.memory->what},
                       {"bytes", row.memory->bytes},
                       {"has", row.memory->has}};
    out["rows"].push_back(std::move(one));
  }
  return json_text(out, 2) + "\n";
}

} // namespace shoal::scenarios
