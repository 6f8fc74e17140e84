#include "scenarios/inference/inference_swarm.hpp"

#include "actors/conduct/conducts.hpp"
#include "actors/dht/messages.hpp"
#include "actors/inference/inference_client.hpp"
#include "actors/inference/inference_server.hpp"
#include "actors/inference/observations.hpp"
#include "actors/inference/pass_client.hpp"
#include "actors/observe.hpp"
#include "kernels/base/check.hpp"
#include "kernels/learn/sized_block.hpp"
#include "scenarios/inference/model_pieces.hpp"
#include "scenarios/inference/pass_driver.hpp"
#include "scenarios/inference/placement_watch.hpp"
#include "scenarios/runner/flat_world.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace shoal::scenarios {

namespace {

using namespace std::chrono_literals;

constexpr auto settling = 3s; // between the start of the servers and that of the clients
constexpr auto settling_loopback = 100ms;
constexpr auto detection_loopback = 2s;

/// Takes the answer of a client.
class reader final : public actors::protocol_actor {
public:
  reader(caf::actor_config& config, actors::host& on,
         std::function<void(const actors::generated&)> then)
      : protocol_actor(config, on), then_(std::move(then)) {}
  caf::behavior make_behavior() override {
    return {[this](const actors::generated& m) { then_(m); }};
  }

private:
  std::function<void(const actors::generated&)> then_;
};

std::uint32_t layers_of(const inference_swarm& what) {
  return what.sized ? what.sized->layers : static_cast<std::uint32_t>(what.model->model->layers());
}

world_options inference_world(const inference_swarm& what) {
  world_options out;
  out.seed = what.seed;
  out.compute_threads = what.sized ? 0 : 1; // sizes take no time to compute
  out.model = what.network;
  out.on_event = [](const netem::delivered_event&) {};
  if (what.real_sockets) {
    out.mode = netem::time_mode::wall_clock;
    out.detection_time = detection_loopback;
    out.real.emplace();
    out.real->options.scenario = "inference";
    out.real->paced = false;
    out.real->host = [](const std::string&) {
      return netem::wire::host_options{
          .name = {}, .listen = netem::wire::address{"127.0.0.1", 0}, .advertise = {}};
    };
  }
  return out;
}

class swarm_run {
public:
  explicit swarm_run(const inference_swarm& what)
      : what_(what), watch_(layers_of(what), actors::move_rules{}.timeout),
        world_(inference_world(what), {what.delay, what.rate}),
        lives_(
            world_.in(),
            {what.seed, "inference.lives", what.lifetime, what.downtime,
             netem::kill_scope::process},
            [this](std::size_t i, actors::host& host) { start_server(i, host); },
            [this](std::size_t, netem::host_index host) { died(host); }) {
    world_.in().on_observation = [this](const actors::host& from, const actors::observation& seen) {
      observe(from, seen);
    };
    world_.in().on_probe = [this](netem::host_index host, std::string_view point) {
      reached(host, point);
    };
    out_.texts.resize(what.clients);
    out_.finished.resize(what.clients);
    out_.first.resize(what.clients);
    if (what.sized)
      make_sized();
    else
      make_pieces(*what.model);
  }
  ~swarm_run() { clients_.clear(); }

  inference_figures run() {
    auto& clock = world_.clock();
    world_.open();
    for (std::size_t i = 0; i < what_.servers.size(); ++i)
      lives_.add(world_.add_machine(fmt::format("server-{}", i)));
    clock.run(what_.real_sockets ? clock.now() + settling_loopback : settling);
    out_.began = clock.now();
    for (std::size_t i = 0; i < what_.clients; ++i) start_client(i);
    const auto until = out_.began + what_.stop_time;
    while (done_ < what_.clients && !out_.stopped && clock.now() < until) {
      const auto before = clock.now();
      // On the wall clock, a stop that comes between two calls would be lost.
      clock.run(what_.real_sockets ? std::min(until, before + 100ms) : until);
      if (clock.now() == before && done_ < what_.clients) break;
    }
    if (what_.real_sockets) clock.settle();
    const std::lock_guard guard(guard_);
    out_.ended = clock.now();
    out_.bytes = world_.bytes();
    out_.bypassed = world_.net().bypassed();
    out_.moves = watch_.moves();
    out_.cut = watch_.cut();
    out_.placement = watch_.mean(out_.began, out_.ended);
    find_missing();
    return std::move(out_);
  }

private:
  void make_sized() {
    const auto layer = learn::make_sized_layer(what_.sized->context);
    blocks_.assign(what_.sized->layers, layer);
    ends_ = learn::make_sized_ends(what_.sized->layers, what_.sized->context);
    name_ = "sizes";
    digest_ = 1;
  }

  void make_pieces(const learn::served_model& model) {
    auto pieces =
        pieces_of(model, {0, static_cast<std::uint32_t>(model.model->layers())}, what_.weights);
    blocks_ = std::move(pieces.layers);
    ends_ = std::move(pieces.ends);
    name_ = model.name;
    digest_ = model.identity().prefix();
    stop_ = model.stop;
  }

  std::size_t sized() const { return what_.sized ? what_.sized->width : 0; }

  void start_server(std::size_t i, actors::host& host) {
    {
      const std::lock_guard guard(guard_);
      names_[host.id()] = fmt::format("server-{}", i);
    }
    actors::inference_server_config config;
    config.model = name_;
    config.model_digest = digest_;
    const auto blocks_of = [this](actors::layer_span layers) {
      return actors::held_blocks{{blocks_.begin() + layers.first, blocks_.begin() + layers.last},
                                 {}};
    };
    if (what_.rebalance_every) {
      auto& by = config.placement.emplace();
      by.layers = static_cast<std::uint32_t>(blocks_.size());
      by.count = what_.servers[i].count();
      by.load = blocks_of;
      by.every = *what_.rebalance_every;
    } else {
      config.layers = what_.servers[i];
      config.held = blocks_of(config.layers);
      const std::lock_guard guard(guard_);
      watch_.taken(host.id(), config.layers, 1, world_.clock().now());
    }
    config.limits = what_.limits;
    config.layer_time = what_.layer_time;
    config.layer_batch_time = what_.layer_batch_time;
    config.context_time = what_.context_time;
    config.sized = sized();
    const auto& wrong = what_.wrong_servers;
    if (std::find(wrong.begin(), wrong.end(), i) != wrong.end()) {
      actors::conduct_options how;
      how.kind = "wrong_layers";
      how.every = what_.wrong_every;
      how.strength = what_.wrong_strength;
      config.conduct = actors::make_conduct(how, host);
    }
    config.dht = world_.start_node(host);
    world_.in().spawn<actors::inference_server>(host, std::move(config));
  }

  void died(netem::host_index host) {
    const std::lock_guard guard(guard_);
    ++out_.deaths;
    watch_.died(world_.in().peer_id_of(host), world_.clock().now());
  }

  void reached(netem::host_index host, std::string_view point) {
    const auto count = [&] {
      const std::lock_guard guard(guard_);
      return ++reached_[std::string{point}];
    }();
    for (const auto& death : what_.deaths)
      if (death.point == point && death.count == count) lives_.kill(host);
  }

  void start_client(std::size_t i) {
    auto& host = world_.in().boot(world_.add_machine(fmt::format("client-{}", i)));
    {
      const std::lock_guard guard(guard_);
      client_of_[world_.in().index_of(host)] = i;
    }
    if (what_.forward || what_.tuning)
      start_passes(i, host);
    else
      start_writing(i, host);
  }

  /// Client `client` has its first token, or its first pass.
  void begin(std::size_t client) {
    out_.first[client] = world_.clock().now();
    if (++begun_ < what_.clients || done_ > 0) return;
    steady_from_ = world_.clock().now();
    tokens_before_ = out_.tokens;
  }

  void finish(std::size_t client) {
    if (done_ == 0 && begun_ == what_.clients) {
      out_.steady_tokens = out_.tokens - tokens_before_;
      out_.steady_time = world_.clock().now() - steady_from_;
    }
    out_.finished[client] = world_.clock().now();
    if (++done_ == what_.clients) world_.clock().request_stop();
  }

  void proceed() {
    if (!what_.proceed || what_.proceed()) return;
    out_.stopped = true;
    world_.clock().request_stop();
  }

  void start_passes(std::size_t i, actors::host& host) {
    actors::pass_client_config config;
    config.model = name_;
    config.model_digest = digest_;
    config.layers = static_cast<std::uint32_t>(ends_->layers());
    config.width = ends_->width();
    config.codec = what_.activations;
    config.sized = sized();
    config.spreads = what_.spreads;
    config.dht = world_.start_node(host);
    clients_.push_back(world_.in().spawn<actors::pass_client>(host, std::move(config)));
    if (what_.tuning) return start_tuning(i, host);
    pass_driver_config work;
    work.samples = what_.forward->samples;
    work.length = what_.forward->length;
    work.repeats = what_.forward->repeats;
    work.layers = static_cast<std::uint32_t>(ends_->layers());
    work.width = ends_->width();
    work.client = clients_.back();
    work.on_pass = [this, i, all = work.repeats,
                    tokens = work.samples * work.length](std::uint32_t pass) {
      const std::lock_guard guard(guard_);
      if (pass == 0)
        begin(i);
      else
        out_.tokens += tokens;
      proceed();
      if (pass == all) finish(i);
    };
    world_.clock().as_host(world_.in().index_of(host),
                           [&] { world_.in().spawn<pass_driver>(host, std::move(work)); });
  }

  void start_tuning(std::size_t i, actors::host& host) {
    prompt_tuner_config work;
    work.model = what_.model;
    work.what = *what_.tuning;
    work.seed = what_.seed + i;
    work.client = clients_.back();
    work.on_step = [this, i](std::uint32_t step, double loss, const std::vector<float>& prompts) {
      const std::lock_guard guard(guard_);
      if (step == 0) begin(i);
      out_.tokens += what_.tuning->samples * what_.tuning->length;
      if (what_.on_step) what_.on_step(i, step, loss, prompts);
      proceed();
    };
    work.on_end = [this, i] {
      const std::lock_guard guard(guard_);
      finish(i);
    };
    world_.clock().as_host(world_.in().index_of(host),
                           [&] { world_.in().spawn<prompt_tuner>(host, std::move(work)); });
  }

  void start_writing(std::size_t i, actors::host& host) {
    actors::inference_client_config config;
    config.model = name_;
    config.model_digest = digest_;
    config.ends = ends_;
    config.sampling = what_.sampling;
    config.codec = what_.activations;
    config.sized = sized();
    config.spreads = what_.spreads;
    config.push = what_.push;
    config.check = what_.check;
    config.seed = what_.seed;
    config.stop = stop_;
    config.dht = world_.start_node(host);
    config.on_token = [this, i](std::uint64_t, learn::token_id token) {
      const std::lock_guard guard(guard_);
      ++out_.tokens;
      if (out_.first[i] == duration{}) begin(i);
      if (what_.on_token) what_.on_token(i, token);
      proceed();
    };
    config.on_retract = [this, i](std::uint64_t, std::size_t kept) {
      const std::lock_guard guard(guard_);
      if (what_.on_retract) what_.on_retract(i, kept);
    };
    clients_.push_back(world_.in().spawn<actors::inference_client>(host, std::move(config)));
    const auto answer = world_.in().spawn<reader>(host, [this, i](const actors::generated& m) {
      SHOAL_CHECK(m.why.empty(), "run_inference_swarm() has checked the prompt");
      const std::lock_guard guard(guard_);
      out_.texts[i] = m.tokens;
      finish(i);
    });
    world_.clock().as_host(world_.in().index_of(host), [&] {
      caf::anon_send(clients_.back(),
                     actors::generate_request{answer, request_of(i), what_.prompt, what_.tokens});
    });
  }

  std::string name_of(actors::peer_id server) const {
    const auto found = names_.find(server);
    return found == names_.end() ? "an unknown server" : found->second;
  }

  void observe(const actors::host& from, const actors::observation& seen) {
    const std::lock_guard guard(guard_);
    if (actors::holds_alternative<actors::misbehaved>(seen)) ++out_.misbehaved;
    if (const auto* taken = actors::get_if<actors::layers_taken>(&seen)) {
      watch_.taken(from.id(), taken->layers, 1, world_.clock().now());
      if (taken->before.count() > 0 && what_.on_news)
        what_.on_news(0, world_.clock().now(),
                      fmt::format("{} moves from layers {} to {}", name_of(from.id()),
                                  to_text(taken->before), to_text(taken->layers)));
    }
    const auto client = client_of_.find(world_.in().index_of(from));
    if (client == client_of_.end()) return;
    const auto news = [&](const std::string& text) {
      if (what_.on_news) what_.on_news(client->second, world_.clock().now(), text);
    };
    if (const auto* route = actors::get_if<actors::route_chosen>(&seen)) {
      std::string list;
      for (const auto& hop : route->hops)
        list += fmt::format("{}layers {} on {}", list.empty() ? "" : ", ", to_text(hop.layers),
                            name_of(hop.server));
      news(list);
    } else if (const auto* lost = actors::get_if<actors::span_lost>(&seen)) {
      ++out_.spans_lost;
      news(fmt::format("{}: {}", name_of(lost->server), lost->reason()));
    } else if (const auto* missing = actors::get_if<actors::layers_missing>(&seen)) {
      ++out_.waits;
      news(missing->text());
    } else if (const auto* waiting = actors::get_if<actors::check_waits>(&seen)) {
      news(waiting->text());
    } else if (const auto* checked = actors::get_if<actors::outputs_checked>(&seen)) {
      ++out_.checks;
      out_.check_passes += checked->passes;
      if (!checked->disputed) return;
      ++out_.disputes;
      news("two servers differ, and no third one decides");
    } else if (const auto* wrong = actors::get_if<actors::wrong_server>(&seen)) {
      ++out_.found_wrong;
      out_.retracted += wrong->retracted;
      news(fmt::format("{} computes wrongly: the text goes back by {} token{}",
                       name_of(wrong->server), wrong->retracted, wrong->retracted == 1 ? "" : "s"));
    } else if (const auto* done = actors::get_if<actors::request_done>(&seen)) {
      out_.replayed += done->replayed;
    }
  }

  void find_missing() {
    std::vector<actors::server_view> alive;
    for (const auto& each : watch_.servers()) alive.push_back({each.peer, each.layers, 0, 0, 0});
    actors::layer_span rest{0, static_cast<std::uint32_t>(blocks_.size())};
    while (const auto missing = actors::uncovered(alive, rest)) {
      out_.missing.push_back(to_text(*missing));
      rest.first = missing->last;
      if (rest.count() == 0) break;
    }
  }

  const inference_swarm& what_;
  inference_figures out_;
  std::vector<std::shared_ptr<const learn::served_block>> blocks_;
  std::shared_ptr<const learn::served_ends> ends_;
  std::string name_;
  std::uint64_t digest_ = 0;
  std::optional<learn::token_id> stop_;
  std::vector<caf::actor> clients_;
  std::map<netem::host_index, std::size_t> client_of_;
  std::map<actors::peer_id, std::string> names_;
  std::map<std::string, std::uint64_t> reached_;
  placement_watch watch_;
  std::atomic<std::size_t> done_{0};
  std::mutex guard_; // on the wall clock, guards the figures and the maps
  std::size_t begun_ = 0;
  duration steady_from_{};
  std::uint64_t tokens_before_ = 0;
  // The world ends first, because its hosts report to the members above.
  flat_world world_;
  host_lives lives_;
};

result<void> check(const inference_swarm& what) {
  SHOAL_CHECK((what.model != nullptr) != what.sized.has_value(), "a swarm serves one model");
  const auto layers = layers_of(what);
  std::vector<actors::server_view> all;
  std::uint64_t held = 0;
  for (const auto& span : what.servers) {
    if (span.first >= span.last || span.last > layers)
      return failure{fmt::format("inference: no layers {}: the model has the layers 0:{}",
                                 to_text(span), layers)};
    all.push_back({all.size() + 1, span, 0, 0, 0});
    held += span.count();
  }
  if (what.rebalance_every && held < layers)
    return failure{fmt::format("inference: the servers hold {} layers in all, and the model has "
                               "{}: add servers, or layers to inference.servers",
                               held, layers)};
  if (const auto missing = actors::uncovered(all, {0, layers}); missing && !what.rebalance_every)
    return failure{fmt::format("inference: no server holds layers {}: give some server of "
                               "inference.servers these layers",
                               to_text(*missing))};
  const auto context =
      what.sized ? what.sized->context : static_cast<std::size_t>(what.model->model->context());
  if (what.tuning && what.sized)
    return failure{"inference: a model of sizes alone learns nothing: give inference.model"};
  if (what.tuning && what.tuning->text.size() <= what.tuning->length)
    return failure{fmt::format("inference: the text to learn has {} tokens: give one with more "
                               "than inference.length = {}",
                               what.tuning->text.size(), what.tuning->length)};
  if (what.tuning && what.tuning->prompt_length + what.tuning->length > context)
    return failure{fmt::format("inference: a prompt of {} and {} tokens are longer than the "
                               "model's context of {}",
                               what.tuning->prompt_length, what.tuning->length, context)};
  if (what.clients == 0) return failure{"inference: at least one client is needed"};
  if (what.forward && what.forward->length > context)
    return failure{fmt::format("inference: sequences of {} tokens are longer than the model's "
                               "context of {}",
                               what.forward->length, context)};
  if (what.prompt.empty()) return failure{"inference: the prompt is empty: give at least one word"};
  if (what.prompt.size() + what.tokens > context)
    return failure{fmt::format("inference: {} tokens after a prompt of {} are more than the "
                               "model's context of {}",
                               what.tokens, what.prompt.size(), context)};
  if (auto valid = learn::validate(what.sampling); !valid) return failure{valid.error()};
  return {};
}

} // namespace

result<inference_figures> run_inference_swarm(const inference_swarm& what) {
  if (auto sound = check(what); !sound) return failure{sound.error()};
  return swarm_run(what).run();
}

} // namespace shoal::scenarios
