// A small swarm of experts in a mini_world: servers, trainers, and a directory in place of the DHT.
#pragma once

#include "actors/experts/expert_server.hpp"
#include "actors/experts/expert_trainer.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/feed_forward.hpp"
#include "kernels/learn/image_ends.hpp"
#include "tests/actors/support/directory.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

namespace shoal::actors::testing {

/// Images of 12 bytes in three classes: a bright third, with noise.
inline std::vector<std::byte> some_images(std::uint64_t number, std::size_t count) {
  auto random = stream(number, "images");
  std::vector<std::byte> out;
  for (std::size_t n = 0; n < count; ++n) {
    const auto label = random.below(3);
    for (std::size_t i = 0; i < 12; ++i)
      out.push_back(std::byte(random.below(120) + (i % 3 == label ? 100 : 0)));
    out.push_back(std::byte(label));
  }
  return out;
}

class expert_lab {
public:
  static constexpr std::size_t width = 6;

  expert_lab() {
    auto& host = world.add_host("directory");
    directory_ = world.spawn<directory>(host);
    net = std::make_shared<const learn::mixture_network>(
        learn::make_image_ends({.pixels = 12, .classes = 3, .width = width}),
        learn::mixture_shape{.layers = 2, .grid = {2, 2}});
  }

  expert_server_config server_config() const {
    expert_server_config out;
    out.model = "m";
    out.block = learn::make_feed_forward(width);
    out.layers = 2;
    out.grid = {2, 2};
    out.copy_every = std::chrono::seconds(4);
    out.dht = directory_;
    return out;
  }
  mini_host& add_server(std::vector<expert_id> experts) {
    auto config = server_config();
    config.experts = std::move(experts);
    return add_server(std::move(config));
  }
  mini_host& add_server(expert_server_config config) {
    auto& host = world.add_host(fmt::format("server-{}", servers.size()));
    servers.push_back(&host);
    actors.push_back(world.spawn<expert_server>(host, std::move(config)));
    return host;
  }
  expert_trainer_config trainer_config() const {
    expert_trainer_config out;
    out.model = "m";
    out.net = net;
    out.samples = [](std::uint64_t step) { return some_images(step, 8); };
    out.search.best = 2;
    out.optimizer = kernels::amsgrad_config{.learning_rate = 3e-3};
    out.timeout = std::chrono::seconds(1);
    out.dht = directory_;
    return out;
  }
  void add_trainer(expert_trainer_config config) {
    auto& host = world.add_host("trainer");
    trainers.push_back(world.spawn<expert_trainer>(host, std::move(config)));
  }
  /// All experts of both layers, dealt to `count` servers.
  void deal(std::size_t count) {
    std::vector<std::vector<expert_id>> hands(count);
    std::size_t next = 0;
    for (std::uint32_t l = 0; l < 2; ++l)
      for (std::uint32_t e = 0; e < 4; ++e) hands[next++ % count].push_back({l, {e / 2, e % 2}});
    for (auto& hand : hands) add_server(std::move(hand));
  }

  mini_world world;
  std::shared_ptr<const learn::mixture_network> net;
  std::vector<mini_host*> servers;
  std::vector<caf::actor> actors, trainers;
  const caf::actor& directory_actor() const { return directory_; }

private:
  caf::actor directory_;
};

} // namespace shoal::actors::testing
