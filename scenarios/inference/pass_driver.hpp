// Runs passes of one size through a swarm, one after the other, to measure how many tokens a second
// the servers compute.
#pragma once

#include "actors/inference/messages.hpp"
#include "actors/protocol_actor.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace shoal::scenarios {

struct pass_driver_config {
  std::size_t samples = 1, length = 1;
  std::uint32_t layers = 0;
  std::size_t width = 0;
  std::uint32_t repeats = 1;
  caf::actor client; ///< a pass_client of the same host
  /// Called after each pass with its number. The first pass, number 0, finds the servers and opens
  /// the connections.
  std::function<void(std::uint32_t pass)> on_pass;
};

class pass_driver final : public actors::protocol_actor {
public:
  pass_driver(caf::actor_config& config, actors::host& on, pass_driver_config options)
      : protocol_actor(config, on), options_(std::move(options)) {}

  caf::behavior make_behavior() override {
    begin();
    return {[this](const actors::layers_done& m) {
      send(options_.client, actors::layers_backward{m.token, {}}); // forgets the pass
      options_.on_pass(done_);
      if (++done_ <= options_.repeats) begin();
    }};
  }
  void on_exit() override {
    options_.client = nullptr;
    options_.on_pass = nullptr;
    protocol_actor::on_exit();
  }

private:
  void begin() {
    actors::layers_forward m;
    m.reply_to = address();
    m.token = done_ + 1;
    m.last = options_.layers;
    m.samples = static_cast<std::uint32_t>(options_.samples);
    m.time = static_cast<std::uint32_t>(options_.length);
    m.activations =
        payload{std::vector<float>(options_.samples * options_.length * options_.width)};
    send(options_.client, std::move(m));
  }

  pass_driver_config options_;
  std::uint32_t done_ = 0;
};

} // namespace shoal::scenarios
