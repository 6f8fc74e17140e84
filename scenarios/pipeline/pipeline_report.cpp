#include "scenarios/pipeline/pipeline_report.hpp"

#include "actors/pipeline/stage_peer.hpp"
#include "kernels/base/json_text.hpp"
#include "kernels/base/stats.hpp"
#include "scenarios/pipeline/pipeline_swarm.hpp"
#include "scenarios/pipeline/text_task.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace shoal::scenarios {

namespace {

using json = nlohmann::ordered_json;

struct held_out_point {
  std::uint64_t step = 0;
  double loss = 0;
};

kernels::optimizer_config pipeline_optimizer(const pipeline_options& what) {
  kernels::optimizer_config out;
  out.kind = kernels::optimizer_kind::adamw;
  out.learning_rate = what.learning_rate;
  out.beta2 = 0.95;
  out.warmup_steps = what.warmup_steps;
  return out;
}

/// `task`: null with `timing`.
result<pipeline_swarm> pipeline_of(const pipeline_options& what, const text_task* task,
                                   std::uint64_t seed) {
  pipeline_swarm out;
  const auto stages = static_cast<std::uint32_t>(what.stages);
  out.optimizer = pipeline_optimizer(what);
  if (task == nullptr) {
    out.model = actors::stage_model::sized(stages, what.context * what.timing_width,
                                           what.timing_parameters);
  } else {
    auto cut = task->cut(stages);
    if (!cut) return failure{cut.error()};
    out.model = std::move(*cut);
  }
  for (std::uint32_t s = 0; s < stages; ++s) {
    if (task == nullptr) {
      out.initial.push_back(actors::sized_stage_state(*out.model, s, seed));
      continue;
    }
    auto first = actors::initial_stage_state(*out.model, s, out.optimizer, task->model().layout(),
                                             task->first_parameters(), seed);
    if (!first) return failure{first.error()};
    out.initial.push_back(std::move(*first));
  }
  const auto codec = kernels::parse_codec(what.activations);
  if (!codec) return failure{codec.error()};
  out.activations = *codec;
  // A sample of a model of sizes alone is one row.
  out.time = task == nullptr ? 1 : static_cast<std::uint32_t>(what.context);
  out.samples = [task, bytes = what.context + 1](std::uint64_t first, std::uint64_t count) {
    return task == nullptr ? payload(std::vector<std::byte>(count * bytes))
                           : task->samples(first, count);
  };
  out.averaging.matchmaking_time = what.matchmaking_time;
  out.batch = what.batch;
  out.micro_batch = what.micro_batch;
  out.steps = what.steps;
  out.in_flight = what.in_flight;
  out.hosts = what.hosts;
  out.trainers = static_cast<std::uint32_t>(what.trainers);
  out.rebalance_every = what.rebalance_every;
  out.sample_time = what.sample_time;
  out.step_time = what.step_time;
  out.refresh = what.refresh;
  out.slowest = what.slowest;
  out.seed = seed;
  out.line = {what.delay, what.rate.bits_per_second};
  out.lifetime = what.lifetime;
  out.downtime = what.downtime;
  out.stop_time = what.stop_time;
  return out;
}

json failures_of(const pipeline_figures& f) {
  json out = json::object();
  for (std::size_t i = 0; i < actors::task_failures; ++i)
    out[std::string(actors::to_string(static_cast<actors::task_failure>(i)))] = f.failures[i];
  return out;
}

std::vector<std::string> defects_of(const pipeline_figures& f, const pipeline_options& what) {
  std::vector<std::string> out;
  if (f.lost_stage)
    out.push_back(fmt::format("all hosts of stage {} were gone at once, and its state with them: "
                              "more hosts or longer lives keep it",
                              *f.lost_stage));
  else if (f.steps < what.steps && !f.stopped)
    out.push_back(fmt::format("the pipeline made {} of {} steps within {}", f.steps, what.steps,
                              to_string(what.stop_time)));
  if (f.bypassed + f.misbehaved > 0)
    out.push_back(fmt::format("a defect of Shoal: {} messages misbehaved, {} bypassed the network",
                              f.misbehaved, f.bypassed));
  return out;
}

} // namespace

result<program_outcome> run_pipeline(const std::string& name, const pipeline_options& what,
                                     std::uint64_t seed, const program_hooks& hooks) {
  kernels::transformer_config model;
  model.layers = static_cast<std::int64_t>(what.layers);
  model.heads = static_cast<std::int64_t>(what.heads);
  model.dim = static_cast<std::int64_t>(what.dim);
  model.context = static_cast<std::int64_t>(what.context);
  std::optional<text_task> task;
  if (!what.timing) {
    auto loaded = text_task::load(model, what.files, what.holdout, seed);
    if (!loaded) return failure{loaded.error()};
    task = std::move(*loaded);
  }
  auto swarm = pipeline_of(what, task ? &*task : nullptr, seed);
  if (!swarm) return failure{swarm.error()};

  std::vector<held_out_point> points;
  std::optional<std::string> broken;
  const auto measure = [&](std::uint64_t step, const std::vector<float>& parameters) {
    const auto loss = task->held_out_loss(parameters);
    if (loss)
      points.push_back({step, *loss});
    else
      broken = loss.error();
  };
  if (task) measure(0, task->first_parameters());
  swarm->on_step = [&](std::uint64_t step, const std::vector<actors::state_ptr>& states) {
    if (task &&
        (step == what.steps || (what.evaluate_every > 0 && step % what.evaluate_every == 0))) {
      const auto whole = whole_of(*swarm->model, task->model(), states);
      if (!whole)
        broken = whole.error();
      else
        measure(step, *whole);
    }
    const auto doing = what.steps > 0 ? fmt::format("{} of {} steps", step, what.steps)
                                      : fmt::format("{} steps", step);
    return !broken && (!hooks.progress || hooks.progress(doing));
  };
  const auto ran = run_pipeline_swarm(*swarm);
  if (broken) return failure{*broken};
  if (!ran) return failure{ran.error()};
  const auto& f = *ran;

  program_outcome out;
  out.stopped = f.stopped;
  out.errors = defects_of(f, what);
  if (task && points.back().step < f.steps) {
    const auto whole = whole_of(*swarm->model, task->model(), f.states);
    if (!whole) return failure{whole.error()};
    measure(f.steps, *whole);
  }
  std::optional<double> alone;
  if (task && what.baseline && out.errors.empty() && !out.stopped) {
    const auto parameters =
        task->train_alone(swarm->optimizer, what.batch, f.steps, [&](std::uint64_t step) {
          if (hooks.progress &&
              !hooks.progress(fmt::format("one machine: {} of {} steps", step, f.steps)))
            out.stopped = true;
          return !out.stopped;
        });
    if (!parameters) return failure{parameters.error()};
    const auto loss = task->held_out_loss(*parameters);
    if (!loss) return failure{loss.error()};
    if (!out.stopped) alone = *loss;
  }

  const double seconds = to_seconds(f.ended - f.began);
  const double rate = seconds > 0 ? static_cast<double>(f.steps * what.batch) / seconds : 0;
  const auto failed = std::accumulate(f.failures.begin(), f.failures.end(), std::uint64_t{0});
  out.closing =
      fmt::format("{} steps of {} samples in {:.1f} s of virtual time: {:.1f} samples/s through {} "
                  "stages on {} hosts. The weakest stage could compute {:.1f}.\n",
                  f.steps, what.batch, seconds, rate, what.stages, what.hosts, f.bound);
  if (task) {
    out.closing += fmt::format("Held-out loss: {:.4f} at first, {:.4f} at the end",
                               points.front().loss, points.back().loss);
    out.closing += alone ? fmt::format("; one machine: {:.4f}.\n", *alone) : ".\n";
    outcome_chart chart;
    chart.least = 1e-3;
    outcome_chart::curve curve{"held-out loss", {}, false, 0};
    for (const auto& each : points) curve.values.push_back(each.loss / points.front().loss);
    chart.panels.push_back({"held-out loss, of the first", {std::move(curve)}});
    out.charts.emplace_back("loss.svg", std::move(chart));
  }
  out.closing += fmt::format(
      "{} deaths and {} moves of hosts; {} tasks went to another host, {} gradients were computed "
      "again.\n{} samples are missing in a step, {} are in it twice, and {} steps are split.\n",
      f.deaths, f.moves, failed, f.hops_repeated, f.samples_missing, f.samples_repeated,
      f.split_steps);

  json evaluations = json::array();
  for (const auto& each : points)
    evaluations.push_back({{"step", each.step}, {"held_out_loss", each.loss}});
  out.summary = json_text(json{{"name", name},
                               {"seed", seed},
                               {"stages", what.stages},
                               {"hosts", what.hosts},
                               {"trainers", what.trainers},
                               {"steps", f.steps},
                               {"virtual_seconds", seconds},
                               {"samples_per_second", rate},
                               {"samples_per_second_bound", f.bound},
                               {"evaluations", evaluations},
                               {"held_out_loss", task ? json(points.back().loss) : json()},
                               {"held_out_loss_of_one_machine", alone ? json(*alone) : json()},
                               {"training_losses", task ? json(f.losses) : json::array()},
                               {"samples_missing", f.samples_missing},
                               {"samples_repeated", f.samples_repeated},
                               {"split_steps", f.split_steps},
                               {"parts_of_batches_dropped", f.partial_batches},
                               {"tasks_failed", failures_of(f)},
                               {"gradients_computed_again", f.hops_repeated},
                               {"batches_reopened", f.batches_reopened},
                               {"gradients_dropped", f.gradients_dropped},
                               {"samples_dropped", f.samples_dropped},
                               {"deaths", f.deaths},
                               {"moves", f.moves},
                               {"states_downloaded", f.downloads},
                               {"state_bytes_downloaded", f.download_bytes},
                               {"hosts_at_the_end", f.hosts_at_end},
                               {"gradients_counted", f.tasks},
                               {"bytes", f.bytes}},
                          2);
  return out;
}

} // namespace shoal::scenarios
