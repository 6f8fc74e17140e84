// Injected bugs of trainers. Each one shows that a check can fail.
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/conduct/conduct.hpp"
#include "actors/training/progress.hpp"

#include <chrono>
#include <stdexcept>

namespace shoal::actors {

struct lost_sample final : conduct {
  void count_samples(std::vector<sample_range>& samples, bool first) override {
    // The sample's gradient stays in the sum.
    if (first && --samples.back().count == 0) samples.pop_back();
  }
};

struct throwing_gradient final : conduct {
  void before_gradient(std::uint64_t epoch) override {
    if (epoch > 0) throw std::runtime_error("no more gradients");
  }
};

struct throwing_step final : conduct {
  void before_step(std::uint64_t epoch) override {
    if (epoch > 0) throw std::runtime_error("no more steps");
  }
};

struct reused_round final : conduct {
  bool reuses_gradients() override { return true; }
};

struct stale_state final : conduct {
  bool follows(const branch& leading, const branch& own) override {
    return leading.epoch <= own.epoch || leading.epoch - own.epoch >= 4;
  }
};

struct split_branch final : conduct {
  bool follows(const branch& leading, const branch& own) override {
    return leading.epoch > own.epoch;
  }
  void ask_for_round(round_request& request) override { request.state = {}; }
};

struct wall_clock final : conduct {
  void ask_for_round(round_request& request) override {
    request.max_wait +=
        std::chrono::system_clock::now().time_since_epoch() % std::chrono::milliseconds(50);
  }
};

} // namespace shoal::actors
