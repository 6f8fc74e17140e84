#include "scenarios/inference/inference_swarm.hpp"

#include "actors/dht/dht_node.hpp"
#include "actors/dht/messages.hpp"
#include "actors/inference/inference_client.hpp"
#include "actors/inference/inference_server.hpp"
#include "actors/inference/observations.hpp"
#include "actors/observe.hpp"
#include "kernels/base/check.hpp"
#include "scenarios/inference/model_pieces.hpp"
#include "scenarios/runner/world.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
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

class swarm_run {
public:
  explicit swarm_run(const inference_swarm& what) : what_(what), model_(*what.model) {
    world_options options;
    options.seed = what.seed;
    options.compute_threads = 1;
    options.on_event = [](const netem::delivered_event&) {};
    if (what_.real_sockets) {
      options.mode = netem::time_mode::wall_clock;
      options.detection_time = detection_loopback;
      options.real.emplace();
      options.real->options.scenario = "inference";
      options.real->paced = false;
      options.real->host = [](const std::string&) {
        return netem::wire::host_options{
            .name = {}, .listen = netem::wire::address{"127.0.0.1", 0}, .advertise = {}};
      };
    }
    in_ = std::make_unique<world>(std::move(options));
    in_->on_observation = [this](const actors::host& from, const actors::observation& seen) {
      observe(from, seen);
    };
    in_->on_probe = [this](netem::host_index host, std::string_view point) {
      reached(host, point);
    };
    out_.texts.resize(what.clients);
    out_.finished.resize(what.clients);
    auto pieces =
        pieces_of(model_, {0, static_cast<std::uint32_t>(model_.model->layers())}, what.weights);
    blocks_ = std::move(pieces.layers);
    ends_ = std::move(pieces.ends);
    digest_ = model_.identity().prefix();
  }
  ~swarm_run() {
    bootstrap_ = nullptr;
    clients_.clear();
    in_.reset();
  }

  inference_figures run() {
    auto& net = in_->net();
    region_ = net.add_region("here");
    netem::path_quality path;
    path.delay = what_.delay;
    net.set_path(region_, region_, path);
    bootstrap_ = start_node(in_->boot(add_machine("directory")));
    for (std::size_t i = 0; i < what_.servers.size(); ++i) {
      machines_.push_back(add_machine(fmt::format("server-{}", i)));
      lives_.push_back(stream(what_.seed, "inference.lives", i));
      start_server(i);
    }
    in_->clock().run(what_.real_sockets ? in_->clock().now() + settling_loopback : settling);
    out_.began = in_->clock().now();
    for (std::size_t i = 0; i < what_.clients; ++i) start_client(i);
    const auto until = out_.began + what_.stop_time;
    while (done_ < what_.clients && !out_.stopped && in_->clock().now() < until) {
      const auto before = in_->clock().now();
      // On the wall clock, a stop that comes between two calls would be lost.
      in_->clock().run(what_.real_sockets ? std::min(until, before + 100ms) : until);
      if (in_->clock().now() == before && done_ < what_.clients) break;
    }
    if (what_.real_sockets) in_->clock().settle();
    const std::lock_guard guard(guard_);
    out_.ended = in_->clock().now();
    for (std::size_t c = 0; c < 4; ++c) out_.bytes += net.traffic_bytes(c);
    out_.bypassed = net.bypassed();
    find_missing();
    return std::move(out_);
  }

private:
  netem::machine_index add_machine(std::string name) {
    return in_->net().add_machine(
        {.name = std::move(name), .region = region_, .up = {what_.rate}, .down = {what_.rate}});
  }

  caf::actor start_node(actors::host& on) {
    actors::dht_config config;
    config.signatures = signatures_;
    if (bootstrap_) config.bootstraps.push_back(bootstrap_);
    return in_->spawn<actors::dht_node>(on, std::move(config));
  }

  void start_server(std::size_t i) {
    auto& host = in_->boot(machines_[i]);
    {
      const std::lock_guard guard(guard_);
      server_of_[in_->index_of(host)] = i;
      names_[host.id()] = fmt::format("server-{}", i);
    }
    actors::inference_server_config config;
    config.model = model_.name;
    config.model_digest = digest_;
    config.layers = what_.servers[i];
    config.blocks.assign(blocks_.begin() + config.layers.first,
                         blocks_.begin() + config.layers.last);
    config.limits = what_.limits;
    config.layer_time = what_.layer_time;
    config.dht = start_node(host);
    in_->spawn<actors::inference_server>(host, std::move(config));
    if (what_.lifetime == duration{}) return;
    const auto now = in_->clock().now();
    const auto index = in_->index_of(host);
    in_->clock().at(now + drawn(i, what_.lifetime), [this, index] { kill(index); });
  }

  duration drawn(std::size_t server, duration mean) {
    const std::lock_guard guard(guard_);
    return from_seconds(-std::log(1 - lives_[server].uniform()) * to_seconds(mean));
  }

  void kill(netem::host_index host) {
    if (!in_->net().alive(host)) return;
    std::size_t i = 0;
    {
      const std::lock_guard guard(guard_);
      i = server_of_.at(host);
      ++out_.deaths;
    }
    in_->net().kill(host, netem::kill_scope::process);
    in_->clock().at(in_->clock().now() + drawn(i, what_.downtime), [this, i] { start_server(i); });
  }

  void reached(netem::host_index host, std::string_view point) {
    const auto count = [&] {
      const std::lock_guard guard(guard_);
      return ++reached_[std::string{point}];
    }();
    for (const auto& death : what_.deaths)
      if (death.point == point && death.count == count) kill(host);
  }

  void start_client(std::size_t i) {
    auto& host = in_->boot(add_machine(fmt::format("client-{}", i)));
    {
      const std::lock_guard guard(guard_);
      client_of_[in_->index_of(host)] = i;
    }
    actors::inference_client_config config;
    config.model = model_.name;
    config.model_digest = digest_;
    config.ends = ends_;
    config.sampling = what_.sampling;
    config.codec = what_.activations;
    config.spreads = what_.spreads;
    config.seed = what_.seed;
    config.stop = model_.stop;
    config.dht = start_node(host);
    config.on_token = [this, i](std::uint64_t, learn::token_id token) {
      const std::lock_guard guard(guard_);
      ++out_.tokens;
      if (what_.on_token) what_.on_token(i, token);
      if (what_.proceed && !what_.proceed()) {
        out_.stopped = true;
        in_->clock().request_stop();
      }
    };
    clients_.push_back(in_->spawn<actors::inference_client>(host, std::move(config)));
    const auto answer = in_->spawn<reader>(host, [this, i](const actors::generated& m) {
      SHOAL_CHECK(m.why.empty(), "run_inference_swarm() has checked the prompt");
      const std::lock_guard guard(guard_);
      out_.texts[i] = m.tokens;
      out_.finished[i] = in_->clock().now();
      if (++done_ == what_.clients) in_->clock().request_stop();
    });
    in_->clock().as_host(in_->index_of(host), [&] {
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
    const auto client = client_of_.find(in_->index_of(from));
    if (client == client_of_.end()) return;
    const auto news = [&](const std::string& text) {
      if (what_.on_news) what_.on_news(client->second, in_->clock().now(), text);
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
      news(fmt::format("no server holds layers {}: waiting for one", to_text(missing->layers)));
    } else if (const auto* done = actors::get_if<actors::request_done>(&seen)) {
      out_.replayed += done->replayed;
    }
  }

  void find_missing() {
    std::vector<actors::server_view> alive;
    for (std::size_t i = 0; i < machines_.size(); ++i)
      if (in_->net().host_on(machines_[i]) != netem::no_host)
        alive.push_back({i + 1, what_.servers[i], 0, 0, 0});
    actors::layer_span rest{0, static_cast<std::uint32_t>(blocks_.size())};
    while (const auto missing = actors::uncovered(alive, rest)) {
      out_.missing.push_back(to_text(*missing));
      rest.first = missing->last;
      if (rest.count() == 0) break;
    }
  }

  const inference_swarm& what_;
  const learn::served_model& model_;
  inference_figures out_;
  std::vector<std::shared_ptr<const learn::served_block>> blocks_;
  std::shared_ptr<const learn::served_ends> ends_;
  std::uint64_t digest_ = 0;
  std::unique_ptr<world> in_;
  std::shared_ptr<actors::signature_cache> signatures_ =
      std::make_shared<actors::signature_cache>(4096);
  netem::region_index region_ = 0;
  caf::actor bootstrap_;
  std::vector<caf::actor> clients_;
  std::vector<netem::machine_index> machines_; // machines of the servers
  std::vector<rng> lives_;
  std::map<netem::host_index, std::size_t> server_of_, client_of_;
  std::map<actors::peer_id, std::string> names_;
  std::map<std::string, std::uint64_t> reached_;
  std::atomic<std::size_t> done_{0};
  std::mutex guard_; // on the wall clock, guards the figures and the maps
};

result<void> check(const inference_swarm& what) {
  SHOAL_CHECK(what.model != nullptr, "a swarm serves a model");
  const auto layers = static_cast<std::uint32_t>(what.model->model->layers());
  std::vector<actors::server_view> all;
  for (const auto& span : what.servers) {
    if (span.first >= span.last || span.last > layers)
      return failure{fmt::format("inference: no layers {}: the model has the layers 0:{}",
                                 to_text(span), layers)};
    all.push_back({all.size() + 1, span, 0, 0, 0});
  }
  if (const auto missing = actors::uncovered(all, {0, layers}))
    return failure{fmt::format("inference: no server holds layers {}: give some server of "
                               "inference.servers these layers",
                               to_text(*missing))};
  if (what.clients == 0) return failure{"inference: at least one client is needed"};
  const auto context = static_cast<std::size_t>(what.model->model->context());
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

std::vector<learn::token_id>
write_alone(const learn::served_model& model, const std::vector<learn::token_id>& prompt,
            std::uint32_t tokens, const learn::sampling_options& sampling, std::uint64_t seed,
            std::uint64_t request, learn::weight_format weights) {
  const auto& decoder = *model.model;
  const learn::layer_range all{0, decoder.layers()};
  const auto block =
      decoder.block(all, model.part(decoder.block_tensors(all).value()), weights).value();
  const auto ends =
      decoder.ends(model.part(decoder.embedding_tensors()), model.part(decoder.head_tensors()))
          .value();
  auto cache = block->make_cache(1, prompt.size() + tokens).value();
  auto random = stream(seed, "sampling", request);
  std::vector<learn::token_id> out;
  auto next = prompt;
  while (out.size() < tokens) {
    auto x = ends->embed(next).value();
    const learn::cached_step step[] = {{&cache, next.size(), x}};
    SHOAL_CHECK(block->extend(step).ok(), "the prompt fits");
    const auto logits =
        ends->logits(std::span(x).last(static_cast<std::size_t>(decoder.width()))).value();
    const auto token = static_cast<learn::token_id>(learn::choose(logits, sampling, random));
    if (model.stop == token) break;
    out.push_back(token);
    next = {token};
  }
  return out;
}

} // namespace shoal::scenarios
