// A small inference swarm in a mini_world: servers with layers of a model, a client, and a
// directory in place of the DHT.
#pragma once

#include "actors/inference/inference_client.hpp"
#include "actors/inference/inference_server.hpp"
#include "actors/inference/observations.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/decoder.hpp"
#include "tests/actors/support/directory.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shoal::actors::testing {

/// A model whose pieces many worlds share.
struct shared_model {
  shared_model(const learn::decoder& model, const std::vector<float>& parameters) {
    const auto part = [&](const std::vector<kernels::tensor_slot>& tensors) {
      return learn::gather(model.layout(), parameters, tensors).value();
    };
    for (std::int64_t i = 0; i < model.layers(); ++i)
      layers.push_back(
          model.block({i, i + 1}, part(model.block_tensors({i, i + 1}).value())).value());
    ends = model.ends(part(model.embedding_tensors()), part(model.head_tensors())).value();
  }
  std::vector<std::shared_ptr<const learn::served_block>> layers;
  std::shared_ptr<const learn::served_ends> ends;
};

/// A model with random weights, so that tests need no file. Layer 1 adds `factor` times as much as
/// the others.
inline shared_model random_model(float factor = 1) {
  learn::decoder_config config;
  config.layers = 5;
  config.heads = 2;
  config.kv_heads = 1;
  config.dim = 8;
  config.hidden = 12;
  config.context = 64;
  config.vocabulary = 50;
  const learn::decoder model(config);
  std::vector<float> parameters(kernels::end_of(model.layout()));
  auto random = stream(7, "model");
  for (auto& each : parameters) each = static_cast<float>(0.7 * random.normal());
  for (const auto& slot : model.layout())
    if (slot.name == "layer1.mlp_down")
      for (std::size_t i = 0; i < slot.size(); ++i) parameters[slot.offset + i] *= factor;
  return {model, parameters};
}

class inference_lab {
public:
  explicit inference_lab(const shared_model& model, std::uint64_t seed = 1)
      : model_(model), world(seed) {
    auto& host = world.add_host("directory");
    directory_ = world.spawn<directory>(host);
  }

  /// With an `adapter`, the server has that model's layers, too, by the name 'adapter'.
  mini_host& add_server(layer_span layers, session_limits limits = {},
                        const shared_model* adapter = nullptr,
                        const std::function<std::shared_ptr<conduct>(host&)>& conduct_of = {}) {
    auto& host = world.add_host(fmt::format("server-{}", servers.size()));
    inference_server_config config;
    if (conduct_of) config.conduct = conduct_of(host);
    config.model = "m";
    config.layers = layers;
    for (auto i = layers.first; i < layers.last; ++i)
      config.held.blocks.push_back(model_.layers[i]);
    for (auto i = layers.first; adapter != nullptr && i < layers.last; ++i)
      config.held.adapters["adapter"].push_back(adapter->layers[i]);
    config.limits = limits;
    config.dht = directory_;
    servers.push_back(&host);
    actors_.push_back(world.spawn<inference_server>(host, std::move(config)));
    return host;
  }
  /// A server that chooses its layers itself.
  mini_host& add_placed_server(std::uint32_t count,
                               duration layer_time = std::chrono::milliseconds(1)) {
    auto& host = world.add_host(fmt::format("server-{}", servers.size()));
    inference_server_config config;
    config.model = "m";
    config.layer_time = layer_time;
    config.dht = directory_;
    auto& by = config.placement.emplace();
    by.layers = static_cast<std::uint32_t>(model_.layers.size());
    by.count = count;
    by.every = std::chrono::seconds(20);
    by.load = [this](layer_span what) {
      return held_blocks{{model_.layers.begin() + what.first, model_.layers.begin() + what.last},
                         {}};
    };
    servers.push_back(&host);
    actors_.push_back(world.spawn<inference_server>(host, std::move(config)));
    return host;
  }
  /// Stores the record of a server that is not one of add_server().
  void announce(const caf::actor& address, const server_record& what, peer_id peer) {
    record entry;
    entry.subkey = fmt::format("{:016x}", peer);
    entry.address = address;
    entry.value = what.pack();
    entry.expires_utc_ns = mini_world::utc_start_ns + duration(std::chrono::hours(1)).count();
    world.send(directory_, store{servers_key("m"), std::move(entry)});
  }
  const caf::actor& actor_of(std::size_t server) const { return actors_[server]; }
  const caf::actor& directory_actor() const { return directory_; }

  void add_client(learn::sampling_options sampling = {.temperature = 0}, std::uint64_t seed = 1,
                  std::size_t beams = 1, double check = 0) {
    auto& host = world.add_host("client");
    client_host = &host;
    inference_client_config config;
    config.model = "m";
    config.ends = model_.ends;
    config.sampling = sampling;
    config.seed = seed;
    config.beams = beams;
    config.check = check;
    config.on_token = [this](std::uint64_t, learn::token_id token) { shown.push_back(token); };
    config.on_retract = [this](std::uint64_t, std::size_t kept) { shown.resize(kept); };
    config.dht = directory_;
    client = world.spawn<inference_client>(host, std::move(config));
    log_ = std::make_shared<collector<generated>::log>();
    asker_ = world.spawn<collector<generated>>(host, log_);
  }

  void ask(std::vector<std::int64_t> prompt, std::uint32_t count, std::uint64_t token = 1) {
    world.send(client, generate_request{asker_, token, std::move(prompt), count});
  }
  const std::vector<generated>& answers() const { return std::get<std::vector<generated>>(*log_); }
  /// Runs until the answer is here, or for `most`.
  std::vector<std::int64_t> write(std::vector<std::int64_t> prompt, std::uint32_t count,
                                  duration most = std::chrono::hours(1)) {
    ask(std::move(prompt), count);
    const auto before = answers().size();
    for (const auto until = world.now() + most; answers().size() == before && world.now() < until;)
      world.run_for(std::chrono::milliseconds(500));
    if (answers().size() == before) return {};
    CHECK(answers().back().why == "");
    return answers().back().tokens;
  }

  template <class Observation>
  std::size_t seen() const {
    return world.observed<Observation>().size();
  }

private:
  const shared_model& model_;

public:
  mini_world world;
  std::vector<mini_host*> servers;
  mini_host* client_host = nullptr;
  caf::actor client;
  std::vector<std::int64_t> shown; ///< the client's tokens, without those that it took back

private:
  caf::actor directory_, asker_;
  std::vector<caf::actor> actors_;
  std::shared_ptr<collector<generated>::log> log_;
};

} // namespace shoal::actors::testing
