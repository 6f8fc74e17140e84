#include "kernels/base/json_text.hpp"
#include "scenarios/inference/inference_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shoal::scenarios {

namespace {

using json = nlohmann::ordered_json;

constexpr double tolerance = 1e-5; // relative, of a loss

double mean(std::span<const double> of) {
  return std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
}

} // namespace

result<program_outcome> run_prompt_tuning(const std::string& name, const inference_options& what,
                                          std::uint64_t seed, const program_hooks& hooks) {
  if (what.model == "timing")
    return failure{"inference: a model of sizes alone learns nothing: give inference.model"};
  const auto model = what.model == "random" ? learn::random_served_model(5, seed)
                                            : learn::load_served_model(what.model, what.tokenizer);
  if (!model) return failure{model.error()};
  auto made = swarm_of(what, seed);
  if (!made) return failure{made.error()};
  auto& swarm = *made;
  swarm.model = &*model;
  swarm.prompt = {0}; // the clients write nothing
  swarm.tokens = 1;
  prompt_tuning task;
  task.text = model->encode(what.prompt);
  task.samples = what.batch;
  task.length = what.length;
  task.prompt_length = what.prompt_length;
  task.deep = what.deep_prompts;
  task.steps = static_cast<std::uint32_t>(what.tokens);
  task.optimizer.learning_rate = what.learning_rate;
  swarm.tuning = task;
  std::vector<std::vector<double>> losses(swarm.clients);
  std::vector<std::vector<float>> learnt(swarm.clients);
  swarm.on_step = [&](std::size_t client, std::uint32_t step, double loss,
                      const std::vector<float>& prompts) {
    losses[client].push_back(loss);
    learnt[client] = prompts;
    if (client == 0 && hooks.print)
      hooks.print(fmt::format("step {:4}  loss {:.4f}\n", step, loss));
  };
  swarm.on_news = [&](std::size_t client, duration when, const std::string& text) {
    // Each pass draws a new route, which is no news.
    if (client == 0 && hooks.print && !text.starts_with("layers "))
      hooks.print(fmt::format("[{:7.2f} s] {}\n", to_seconds(when), text));
  };
  std::uint64_t done = 0;
  swarm.proceed = [&] {
    ++done;
    return !hooks.progress ||
           hooks.progress(
               {fmt::format("{} of {} steps", done, (what.tokens + 1) * what.clients),
                static_cast<double>(done) / static_cast<double>((what.tokens + 1) * what.clients)});
  };
  const auto figures = run_inference_swarm(swarm);
  if (!figures) return failure{figures.error()};

  program_outcome out;
  out.stopped = figures->stopped;
  std::size_t finished = 0, fell = 0, same = 0;
  for (std::size_t i = 0; i < swarm.clients; ++i) {
    const auto& all = losses[i];
    if (figures->finished[i] == duration{}) continue;
    ++finished;
    // Each batch has its own loss, so that means tell whether the loss falls.
    const auto some = std::max<std::size_t>(1, std::min<std::size_t>(5, all.size() / 2));
    fell += mean(std::span(all).last(some)) < mean(std::span(all).first(some)) ? 1 : 0;
    const auto batch = batch_of(task, seed + i, static_cast<std::uint32_t>(all.size() - 1));
    const double alone = loss_alone(*model, task, batch, learnt[i]);
    same += std::abs(alone - all.back()) <= tolerance * std::abs(alone) ? 1 : 0;
  }
  if (finished < swarm.clients && !out.stopped)
    out.errors.push_back(fmt::format("{} of {} clients did not finish within {}",
                                     swarm.clients - finished, swarm.clients,
                                     to_string(what.stop_time)));
  if (fell < finished)
    out.errors.push_back(fmt::format("the loss of {} of {} clients has not fallen: change "
                                     "inference.learning_rate or take more steps",
                                     finished - fell, finished));
  if (same < finished && swarm.activations == kernels::codec::none &&
      swarm.weights == learn::weight_format::float32)
    out.errors.push_back(fmt::format("{} of {} losses are not those of the model on one machine",
                                     finished - same, finished));
  const double first = losses[0].empty() ? 0 : losses[0].front();
  const double last = losses[0].empty() ? 0 : losses[0].back();
  const double seconds = to_seconds(figures->ended - figures->began);
  out.closing = fmt::format(
      "{} steps: the loss went from {:.4f} to {:.4f} in {:.2f} s. {} deaths of servers, {} losses "
      "of "
      "a server in use, {} layer passes repeated. {} of {} losses equal the model's own.\n",
      losses[0].empty() ? 0 : losses[0].size() - 1, first, last, seconds, figures->deaths,
      figures->spans_lost, figures->replayed, same, finished);
  out.summary = json_text(json{{"name", name},
                               {"seed", seed},
                               {"model", model->name},
                               {"servers", swarm.servers.size()},
                               {"clients", swarm.clients},
                               {"finished", finished},
                               {"losses", losses[0]},
                               {"same_loss", same},
                               {"virtual_seconds", seconds},
                               {"deaths", figures->deaths},
                               {"servers_lost_in_use", figures->spans_lost},
                               {"layer_passes_repeated", figures->replayed},
                               {"bytes", figures->bytes}},
                          2);
  return out;
}

} // namespace shoal::scenarios
