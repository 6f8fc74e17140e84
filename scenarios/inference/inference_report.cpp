#include "scenarios/inference/inference_report.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/learn/text_codec.hpp"
#include "scenarios/schema/describe.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace shoal::scenarios {

namespace {

using json = nlohmann::ordered_json;

constexpr std::int64_t random_layers = 5;

/// Prints one client's text, and news between whole lines.
class printer {
public:
  printer(const program_hooks& hooks, const learn::text_codec& codec,
          std::vector<learn::token_id> prompt)
      : hooks_(hooks), codec_(codec), tokens_(std::move(prompt)), prompt_(tokens_.size()),
        shown_(codec.decode(tokens_)) {}

  void news(duration when, const std::string& what) {
    if (!hooks_.print) return;
    hooks_.print(
        fmt::format("{}[{:7.2f} s] {}\n", at_line_begin_ ? "" : "\n", to_seconds(when), what));
    at_line_begin_ = true;
  }
  void token(learn::token_id next) {
    if (!begun_) show(shown_);
    begun_ = true;
    tokens_.push_back(next);
    const auto all = codec_.decode(tokens_);
    show(all.substr(std::min(shown_.size(), all.size())));
    shown_ = all;
  }
  /// The text goes back to its first `kept` tokens after the prompt, and is shown again.
  void retract(std::size_t kept) {
    tokens_.resize(prompt_ + kept);
    shown_ = codec_.decode(tokens_);
    end();
    show(shown_);
  }
  void end() {
    if (hooks_.print && !at_line_begin_) hooks_.print("\n");
    at_line_begin_ = true;
  }

private:
  void show(const std::string& text) {
    if (!hooks_.print || text.empty()) return;
    hooks_.print(learn::printable(text));
    at_line_begin_ = text.back() == '\n';
  }

  const program_hooks& hooks_;
  const learn::text_codec& codec_;
  std::vector<learn::token_id> tokens_;
  std::size_t prompt_; // tokens of the prompt
  std::string shown_;
  bool begun_ = false, at_line_begin_ = true;
};

} // namespace

std::optional<actors::layer_span> layers_of(std::string_view text) {
  actors::layer_span out;
  const auto* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, out.first);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ':') return std::nullopt;
  const auto last = std::from_chars(first.ptr + 1, end, out.last);
  if (last.ec != std::errc{} || last.ptr != end || out.first >= out.last) return std::nullopt;
  return out;
}

std::optional<std::size_t> number_of_server(std::string_view name) {
  constexpr std::string_view prefix = "server-";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::size_t out = 0;
  const auto* end = name.data() + name.size();
  const auto read = std::from_chars(name.data(), end, out);
  if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  return out;
}

std::optional<actors::layer_span> some_layers_of(std::string_view text) {
  std::uint32_t count = 0;
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, count);
  if (read.ec == std::errc{} && read.ptr == end && count > 0) return actors::layer_span{0, count};
  return layers_of(text);
}

result<inference_swarm> swarm_of(const inference_options& what, std::uint64_t seed) {
  inference_swarm swarm;
  for (const auto& each : what.servers) {
    const auto layers = what.placement == "auto" ? some_layers_of(each) : layers_of(each);
    if (!layers) return failure{fmt::format("inference: '{}' names no layers", each)};
    swarm.servers.push_back(*layers);
  }
  if (what.placement == "auto") swarm.rebalance_every = what.rebalance_every;
  swarm.clients = what.clients;
  swarm.tokens = static_cast<std::uint32_t>(what.tokens);
  swarm.sampling = {what.temperature, what.top_k, what.top_p};
  swarm.seed = seed;
  swarm.delay = what.delay;
  swarm.rate = what.rate.bits_per_second;
  swarm.layer_time = what.layer_time;
  swarm.layer_batch_time = what.layer_batch_time;
  swarm.context_time = what.context_time;
  for (const auto& [model, text] : names_of(netem::transfer_model{}))
    if (what.network == text) swarm.network = model;
  swarm.limits.cache = what.cache;
  swarm.limits.cache_of_one = std::max<std::uint64_t>(what.cache / 2, 1);
  const auto codec = kernels::parse_codec(what.activations);
  if (!codec) return failure{codec.error()};
  swarm.activations = *codec;
  swarm.spreads = what.route == "spread";
  swarm.push = what.push;
  swarm.check = what.check;
  for (const auto& name : what.wrong_servers) {
    const auto number = number_of_server(name);
    if (!number) return failure{fmt::format("inference: '{}' names no server", name)};
    swarm.wrong_servers.push_back(*number);
  }
  swarm.wrong_every = what.wrong_every;
  swarm.wrong_strength = what.wrong_strength;
  swarm.real_sockets = what.loopback;
  swarm.weights = what.weights == "int8"       ? learn::weight_format::int8
                  : what.weights == "bfloat16" ? learn::weight_format::bfloat16
                                               : learn::weight_format::float32;
  swarm.lifetime = what.lifetime;
  swarm.downtime = what.downtime;
  swarm.stop_time = what.stop_time;
  return swarm;
}

result<program_outcome> run_inference(const std::string& name, const inference_options& what,
                                      std::uint64_t seed, const program_hooks& hooks) {
  if (what.task == "tune_prompts") return run_prompt_tuning(name, what, seed, hooks);
  if (what.model == "timing" || what.task != "write")
    return run_inference_timing(name, what, seed, hooks);
  result<learn::served_model> model = what.model == "random"
                                          ? learn::random_served_model(random_layers, seed)
                                          : learn::load_served_model(what.model, what.tokenizer);
  if (!model) return failure{model.error()};
  auto made = swarm_of(what, seed);
  if (!made) return failure{made.error()};
  auto& swarm = *made;
  swarm.model = &*model;
  swarm.prompt = model->encode(what.prompt);
  printer shown(hooks, *model->codec, swarm.prompt);
  swarm.on_token = [&](std::size_t client, learn::token_id token) {
    if (client == 0) shown.token(token);
  };
  swarm.on_retract = [&](std::size_t client, std::size_t kept) {
    if (client == 0) shown.retract(kept);
  };
  swarm.on_news = [&](std::size_t client, duration when, const std::string& text) {
    if (client == 0) shown.news(when, text);
  };
  std::uint64_t written = 0;
  swarm.proceed = [&] {
    ++written;
    return !hooks.progress ||
           hooks.progress(
               {fmt::format("{} of {} tokens", written, what.tokens * what.clients),
                static_cast<double>(written) / static_cast<double>(what.tokens * what.clients)});
  };
  const auto figures = run_inference_swarm(swarm);
  if (!figures) return failure{figures.error()};
  shown.end();

  program_outcome out;
  const double seconds = to_seconds(figures->ended - figures->began);
  std::size_t finished = 0, same = 0;
  json texts = json::array();
  for (std::size_t i = 0; i < swarm.clients; ++i) {
    texts.push_back(learn::printable(model->codec->decode(figures->texts[i])));
    if (figures->finished[i] == duration{}) continue;
    ++finished;
    if (swarm.sampling.temperature == 0 && i > 0 && same > 0) {
      same += figures->texts[i] == figures->texts[0] ? 1 : 0;
      continue;
    }
    const auto alone = write_alone(*model, swarm.prompt, swarm.tokens, swarm.sampling, seed,
                                   request_of(i), swarm.weights);
    same += figures->texts[i] == alone ? 1 : 0;
  }
  out.stopped = figures->stopped;
  if (finished < swarm.clients && !out.stopped)
    out.errors.push_back(fmt::format(
        "{} of {} clients did not finish within {}{}", swarm.clients - finished, swarm.clients,
        to_string(what.stop_time),
        figures->missing.empty()
            ? ""
            : fmt::format(": no server holds layers {}", fmt::join(figures->missing, ", "))));
  if (same < finished && swarm.activations == kernels::codec::none)
    out.errors.push_back(fmt::format("{} of {} texts are not those that the model writes alone",
                                     finished - same, finished));
  if (figures->bypassed + figures->misbehaved > 0)
    out.errors.push_back(fmt::format("a defect of Shoal: {} messages misbehaved, {} bypassed the "
                                     "network",
                                     figures->misbehaved, figures->bypassed));
  if (figures->cut > 0)
    out.errors.push_back(
        fmt::format("a defect of Shoal: {} layers lost their last server by a move", figures->cut));
  out.closing = fmt::format(
      "{} tokens in {:.2f} s: {:.2f} tokens/s. {} deaths of servers, {} losses of a server in use, "
      "{} waits for layers, {} layer passes repeated. {} of {} texts equal the model's own.\n",
      figures->tokens, seconds, static_cast<double>(figures->tokens) / std::max(seconds, 1e-9),
      figures->deaths, figures->spans_lost, figures->waits, figures->replayed, same, finished);
  json summary{
      {"name", name},
      {"seed", seed},
      {"model", model->name},
      {"servers", swarm.servers.size()},
      {"clients", swarm.clients},
      {"finished", finished},
      {"same_text", same},
      {"tokens", figures->tokens},
      {what.loopback ? "seconds" : "virtual_seconds", seconds},
      {"tokens_per_second", static_cast<double>(figures->tokens) / std::max(seconds, 1e-9)},
      {"deaths", figures->deaths},
      {"servers_lost_in_use", figures->spans_lost},
      {"waits", figures->waits},
      {"layer_passes_repeated", figures->replayed},
      {"bytes", figures->bytes},
      {"texts", texts}};
  if (swarm.check > 0) {
    out.closing +=
        fmt::format("{} checks with {} passes of other servers: {} server{} found "
                    "wrong, {} tokens taken back, {} without a decision.\n",
                    figures->checks, figures->check_passes, figures->found_wrong,
                    figures->found_wrong == 1 ? "" : "s", figures->retracted, figures->disputes);
    summary["checks"] = figures->checks;
    summary["check_passes"] = figures->check_passes;
    summary["found_wrong"] = figures->found_wrong;
    summary["tokens_retracted"] = figures->retracted;
    summary["disputes"] = figures->disputes;
  }
  if (swarm.rebalance_every) {
    out.closing += fmt::format("{} moves of servers to other layers. The weakest layer had {:.3f} "
                               "of the servers that it could have, on average.\n",
                               figures->moves, figures->placement);
    summary["moves"] = figures->moves;
    summary["weakest_layer_of_optimum"] = figures->placement;
  }
  out.summary = json_text(summary, 2);
  return out;
}

} // namespace shoal::scenarios
