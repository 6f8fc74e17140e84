#include "kernels/base/json_text.hpp"
#include "scenarios/inference/inference_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shoal::scenarios {

namespace {

using json = nlohmann::ordered_json;

/// The least, over the layers, of the sum of the rates of the servers that hold the layer. No more
/// tokens a second pass the swarm, whatever routes the clients choose. A server's rate is that of
/// large batches without context. Servers that choose their layers are bounded by the best that
/// any placement could reach.
double bound_of(const inference_swarm& what, std::uint32_t layers) {
  if (what.rebalance_every)
    return static_cast<double>(what.servers.size()) / (to_seconds(what.layer_time) * layers);
  std::vector<double> rates(layers);
  for (const auto& span : what.servers)
    for (auto layer = span.first; layer < span.last; ++layer)
      rates[layer] += 1 / (to_seconds(what.layer_time) * span.count());
  return *std::min_element(rates.begin(), rates.end());
}

} // namespace

result<program_outcome> run_inference_timing(const std::string& name, const inference_options& what,
                                             std::uint64_t seed, const program_hooks& hooks) {
  auto made = swarm_of(what, seed);
  if (!made) return failure{made.error()};
  auto& swarm = *made;
  result<learn::served_model> model{failure{}};
  if (what.model == "timing") {
    swarm.sized = sized_model{static_cast<std::uint32_t>(what.layers), what.width};
    swarm.sized->context = std::max(what.prompt.size() + what.tokens, what.length);
    swarm.prompt.assign(what.prompt.size(), 0);
  } else {
    model = what.model == "random" ? learn::random_served_model(5, seed)
                                   : learn::load_served_model(what.model, what.tokenizer);
    if (!model) return failure{model.error()};
    swarm.model = &*model;
    swarm.prompt = model->encode(what.prompt);
  }
  const bool forward = what.task == "forward";
  if (forward)
    swarm.forward = pass_work{what.batch, what.length, static_cast<std::uint32_t>(what.tokens)};
  std::uint64_t done = 0;
  swarm.proceed = [&] {
    ++done;
    return !hooks.progress ||
           hooks.progress(fmt::format("{} of {} {}", done, what.tokens * what.clients,
                                      forward ? "batches" : "tokens"));
  };
  const auto figures = run_inference_swarm(swarm);
  if (!figures) return failure{figures.error()};

  program_outcome out;
  out.stopped = figures->stopped;
  // Each client by itself: its work between its first result and its last one.
  double per_client = 0;
  std::size_t finished = 0;
  const double units = forward ? static_cast<double>(what.batch * what.length * what.tokens)
                               : static_cast<double>(what.tokens - 1);
  for (std::size_t i = 0; i < swarm.clients; ++i) {
    if (figures->finished[i] <= figures->first[i]) continue;
    per_client += units / to_seconds(figures->finished[i] - figures->first[i]);
    ++finished;
  }
  per_client /= static_cast<double>(std::max<std::size_t>(finished, 1));
  if (finished < swarm.clients && !out.stopped)
    out.errors.push_back(fmt::format("{} of {} clients did not finish within {}",
                                     swarm.clients - finished, swarm.clients,
                                     to_string(what.stop_time)));
  const double seconds = to_seconds(figures->ended - figures->began);
  const double together = static_cast<double>(figures->tokens) / std::max(seconds, 1e-9);
  const auto layers =
      swarm.sized ? swarm.sized->layers : static_cast<std::uint32_t>(swarm.model->model->layers());
  const double bound = bound_of(swarm, layers);
  out.closing = fmt::format("{} tokens in {:.2f} s: {:.2f} tokens/s. A client has {:.3f} tokens/s "
                            "by itself.\n",
                            figures->tokens, seconds, together, per_client);
  double steady = 0;
  if (swarm.clients > 1 && figures->steady_time > duration{}) {
    steady = static_cast<double>(figures->steady_tokens) / to_seconds(figures->steady_time);
    out.closing += fmt::format("While all clients compute: {:.2f} tokens/s, {:.3f} of the servers' "
                               "bound of {:.2f}.\n",
                               steady, steady / bound, bound);
  }
  out.summary = json_text(json{{"name", name},
                               {"seed", seed},
                               {"model", what.model},
                               {"servers", swarm.servers.size()},
                               {"clients", swarm.clients},
                               {"finished", finished},
                               {"tokens", figures->tokens},
                               {"virtual_seconds", seconds},
                               {"tokens_per_second", together},
                               {"tokens_per_second_of_a_client", per_client},
                               {"steady_tokens_per_second", steady},
                               {"bound", bound},
                               {"deaths", figures->deaths},
                               {"servers_lost_in_use", figures->spans_lost},
                               {"bytes", figures->bytes}},
                          2);
  return out;
}

} // namespace shoal::scenarios
