#include "scenarios/experts/staleness_report.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/learn/image_ends.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace shoal::scenarios {

namespace {

using json = nlohmann::ordered_json;

struct study_run {
  std::string name;
  bool dense = false;
  double failure = 0;
};

std::vector<study_run> runs_of(const staleness_study& what) {
  std::vector<study_run> out;
  for (const auto& model : what.models) {
    if (model == "dense") {
      out.push_back({"dense", true, 0});
      continue;
    }
    for (const double failure : what.failures)
      out.push_back({failure > 0 ? fmt::format("mixture, {:g} % fail", 100 * failure) : "mixture",
                     false, failure});
  }
  return out;
}

} // namespace

std::uint64_t dense_width_of(const staleness_study& what) {
  if (what.dense_width > 0) return what.dense_width;
  return static_cast<std::uint64_t>(
      std::lround(static_cast<double>(what.width) * std::sqrt(static_cast<double>(what.chosen))));
}

program_outcome run_staleness_study(const std::string& name, const staleness_study& what,
                                    std::uint64_t seed, std::span<const std::byte> training,
                                    std::span<const std::byte> held_out,
                                    const program_hooks& hooks) {
  const auto print = [&](const std::string& text) {
    if (hooks.print) hooks.print(text);
  };
  program_outcome out;
  outcome_chart chart;
  chart.least = 1e-2;
  chart.panels.push_back({"held-out errors, of the first", {}});
  json runs = json::array();
  for (const auto& each : runs_of(what)) {
    if (out.stopped) break;
    const auto width = each.dense ? dense_width_of(what) : what.width;
    stale_mixture how;
    how.ends =
        learn::make_image_ends({.pixels = what.size, .classes = what.classes, .width = width});
    how.layers = what.layers;
    how.experts = each.dense ? 1 : static_cast<std::uint32_t>(what.experts);
    how.chosen = each.dense ? 1 : what.chosen;
    how.failure = each.failure;
    how.balance = what.balance;
    how.trainers = what.trainers;
    how.batch = what.batch;
    how.updates = what.updates;
    how.evaluate_every = what.evaluate_every;
    how.optimizer.learning_rate = what.learning_rate;
    how.seed = seed;
    how.proceed = [&](std::uint64_t updates) {
      out.stopped = hooks.progress && !hooks.progress(fmt::format("{}: {} of {} updates", each.name,
                                                                  updates, what.updates));
      return !out.stopped;
    };
    const auto figures = run_stale_mixture(how, training, held_out);
    print(fmt::format("{}, width {}: mean staleness {:.2f}, most {}\n{:>8}  {:>13}  {:>9}  {:>9}\n",
                      each.name, width, figures.mean_staleness, figures.most_stale, "updates",
                      "training loss", "held-out", "accuracy"));
    json curve = json::array();
    outcome_chart::curve drawn{each.name, {}, false, chart.panels.front().curves.size()};
    const double first = 1 - figures.curve.front().accuracy;
    for (const auto& point : figures.curve) {
      print(fmt::format("{:>8}  {:>13.4f}  {:>9.4f}  {:>9.4f}\n", point.updates,
                        point.training_loss, point.loss, point.accuracy));
      curve.push_back({{"updates", point.updates},
                       {"training_loss", point.training_loss},
                       {"held_out_loss", point.loss},
                       {"held_out_accuracy", point.accuracy}});
      drawn.values.push_back((1 - point.accuracy) / first);
    }
    chart.panels.front().curves.push_back(std::move(drawn));
    runs.push_back({{"model", each.dense ? "dense" : "mixture"},
                    {"failure", each.failure},
                    {"width", width},
                    {"mean_staleness", figures.mean_staleness},
                    {"most_stale", figures.most_stale},
                    {"rows_unanswered", figures.unanswered},
                    {"expert_steps", figures.expert_steps},
                    {"curve", curve}});
  }
  out.charts.emplace_back("convergence.svg", std::move(chart));
  out.summary = json_text(json{{"name", name},
                               {"seed", seed},
                               {"trainers", what.trainers},
                               {"updates", what.updates},
                               {"runs", runs}},
                          2);
  return out;
}

} // namespace shoal::scenarios
