#include "scenarios/experts/expert_report.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/base/stats.hpp"
#include "kernels/learn/feed_forward.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shoal::scenarios {

namespace {

using json = nlohmann::ordered_json;

/// An expert of sizes alone: its output is zero, and it has no parameters.
class sized_expert final : public learn::expert_block {
public:
  explicit sized_expert(std::size_t width) : width_(width) {}
  std::size_t width() const noexcept override { return width_; }
  std::size_t parameter_count() const noexcept override { return 0; }
  std::vector<float> initial_parameters(std::uint64_t) const override { return {}; }
  result<std::vector<float>> forward(std::span<const float>,
                                     std::span<const float> x) const override {
    return std::vector<float>(x.size());
  }
  result<std::vector<float>> backward(std::span<const float>, std::span<const float> x,
                                      std::span<const float>, std::span<float>) const override {
    return std::vector<float>(x.size());
  }

private:
  std::size_t width_;
};

/// The mean of losses in `parts` equal parts of the steps.
std::vector<double> means_of(const std::vector<expert_figures::step>& steps, std::size_t parts) {
  std::vector<double> out;
  for (std::size_t p = 0; p < parts; ++p) {
    const auto first = p * steps.size() / parts, last = (p + 1) * steps.size() / parts;
    if (first == last) continue;
    double sum = 0;
    for (auto i = first; i < last; ++i) sum += steps[i].loss;
    out.push_back(sum / static_cast<double>(last - first));
  }
  return out;
}

json spread_of(const std::vector<double>& values) {
  if (values.empty()) return json();
  return {{"count", values.size()},
          {"mean", mean(values)},
          {"median", median(values)},
          {"p99", quantile(values, 0.99)},
          {"most", *std::max_element(values.begin(), values.end())}};
}

double most_of(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

} // namespace

expert_swarm swarm_of(const experts_options& what, std::uint64_t seed, const expert_data& data) {
  expert_swarm out;
  out.net = std::make_shared<const learn::mixture_network>(
      data.ends,
      learn::mixture_shape{.layers = what.layers,
                           .grid = std::vector<std::uint32_t>(
                               what.grid.dimensions, static_cast<std::uint32_t>(what.grid.side)),
                           .balance = what.balance,
                           .gate = gate_of(what.gate)});
  if (what.timing) {
    out.block = std::make_shared<const sized_expert>(what.width);
    out.sized = what.timing_width;
    const auto parameters = 24 * what.timing_width * what.timing_width + 25 * what.timing_width;
    out.copy_bytes = 4 * (parameters + kernels::amsgrad_state_size(parameters));
  } else {
    out.block = learn::make_feed_forward(what.width);
  }
  out.samples = data.samples;
  out.held_out = data.held_out;
  out.evaluate_every = what.timing ? 0 : what.evaluate_every;
  out.hosts = what.hosts;
  out.trainers = what.trainers;
  out.steps = what.steps;
  out.search = {.best = what.chosen, .most_look_ups = what.look_ups};
  out.optimizer.learning_rate = what.learning_rate;
  out.seed = seed;
  out.delay = what.delay;
  out.rate = what.rate.bits_per_second;
  out.batch_time = what.batch_time;
  out.row_time = what.row_time;
  out.step_time = what.step_time;
  out.timeout = what.timeout;
  out.copy_every = what.copy_every;
  out.record_lifetime = what.record_lifetime;
  out.renew = what.record_lifetime / 3;
  out.share_every = what.share_every;
  out.copies = what.copies;
  out.most_staleness = what.most_staleness;
  out.lifetime = what.lifetime;
  out.downtime = what.downtime;
  out.lose_share = what.lose_share;
  out.lose_at = what.lose_at;
  out.stop_time = what.stop_time;
  return out;
}

result<program_outcome> run_experts(const std::string& name, const experts_options& what,
                                    std::uint64_t seed, const program_hooks& hooks) {
  const auto data = expert_data_of(what, seed);
  if (!data) return failure{data.error()};
  auto swarm = swarm_of(what, seed, *data);
  const auto all = what.steps * what.trainers;
  swarm.proceed = [&](std::uint64_t steps) {
    return !hooks.progress || hooks.progress(all > 0 ? fmt::format("{} of {} steps", steps, all)
                                                     : fmt::format("{} steps", steps));
  };
  const auto ran = run_expert_swarm(swarm);
  if (!ran) return failure{ran.error()};
  const auto& f = *ran;
  program_outcome out;
  out.stopped = f.stopped;
  const double seconds = to_seconds(f.ended - f.began);
  const auto losses = means_of(f.steps, 20);
  if (all > 0 && f.steps.size() < all && !f.stopped)
    out.errors.push_back(fmt::format("the trainers made {} of {} steps within {}", f.steps.size(),
                                     all, to_string(what.stop_time)));
  if (f.bypassed + f.misbehaved > 0)
    out.errors.push_back(fmt::format("a defect of Shoal: {} messages misbehaved, {} bypassed the "
                                     "network",
                                     f.misbehaved, f.bypassed));
  std::vector<double> step_seconds;
  for (const auto& each : f.steps) step_seconds.push_back(each.seconds);
  json evaluations = json::array();
  for (const auto& each : f.evaluations) {
    evaluations.push_back(
        {{"seconds", to_seconds(each.when)}, {"step", each.step}, {"held_out_loss", each.loss}});
    if (data->counts_right) evaluations.back()["held_out_accuracy"] = each.accuracy;
  }
  out.closing =
      fmt::format("{} steps of {} trainers in {:.1f} s of virtual time, {} experts on {} hosts.\n",
                  f.steps.size(), what.trainers, seconds, f.experts, what.hosts);
  if (!losses.empty() && !what.timing) {
    out.closing += fmt::format("Training loss: {:.4f} at first, {:.4f} at the end.", losses.front(),
                               losses.back());
    if (!f.evaluations.empty()) {
      const auto &first = f.evaluations.front(), &last = f.evaluations.back();
      out.closing += data->counts_right
                         ? fmt::format(" Held out: accuracy {:.3f} at first, {:.3f} at the end.",
                                       first.accuracy, last.accuracy)
                         : fmt::format(" Held out: loss {:.4f} at first, {:.4f} at the end.",
                                       first.loss, last.loss);
    }
    out.closing += "\n";
  }
  out.closing += fmt::format(
      "{} requests to experts, {} without an answer; {} rows without any expert in {} steps. Mean "
      "staleness {:.2f}.\n",
      f.calls, f.calls_lost, f.rows_unanswered, f.steps_unanswered, f.mean_staleness());
  if (f.deaths > 0)
    out.closing += fmt::format(
        "{} deaths of hosts with {} experts; {} came back after {:.1f} s (median), {:.1f} s at "
        "most; {} are lost.\n",
        f.deaths, f.experts_orphaned, f.experts_revived,
        f.recovery_seconds.empty() ? 0 : median(f.recovery_seconds), most_of(f.recovery_seconds),
        f.experts_missing);
  if (!losses.empty() && !what.timing) {
    outcome_chart chart;
    chart.least = 1e-3;
    outcome_chart::curve curve{"training loss", {}, false, 0};
    for (const double loss : losses) curve.values.push_back(loss / losses.front());
    chart.panels.push_back({"training loss, of the first", {std::move(curve)}});
    out.charts.emplace_back("loss.svg", std::move(chart));
  }
  out.summary = json_text(json{{"name", name},
                               {"seed", seed},
                               {"experts", f.experts},
                               {"hosts", what.hosts},
                               {"trainers", what.trainers},
                               {"steps", f.steps.size()},
                               {"virtual_seconds", seconds},
                               {"training_losses", what.timing ? json::array() : json(losses)},
                               {"evaluations", evaluations},
                               {"requests", f.calls},
                               {"requests_without_answer", f.calls_lost},
                               {"repeats_answered", f.repeats},
                               {"rows_unanswered", f.rows_unanswered},
                               {"steps_with_unanswered_rows", f.steps_unanswered},
                               {"step_seconds", spread_of(step_seconds)},
                               {"look_ups", f.look_ups},
                               {"look_up_seconds_of_a_step", spread_of(f.look_up_seconds)},
                               {"mean_staleness", f.mean_staleness()},
                               {"requests_of_a_backward_batch",
                                f.backward_batches > 0 ? static_cast<double>(f.backward_requests) /
                                                             static_cast<double>(f.backward_batches)
                                                       : 0},
                               {"deaths", f.deaths},
                               {"experts_orphaned", f.experts_orphaned},
                               {"experts_revived", f.experts_revived},
                               {"experts_given_up", f.given_up},
                               {"experts_missing_at_the_end", f.experts_missing},
                               {"recovery_seconds", spread_of(f.recovery_seconds)},
                               {"bytes", f.bytes}},
                          2);
  return out;
}

} // namespace shoal::scenarios
