// A swarm of experts in virtual time: hosts with experts that come and go, and trainers that learn
// with them. Its actors are those of every world (actors/experts/).
#pragma once

#include "actors/experts/expert_search.hpp"
#include "kernels/amsgrad.hpp"
#include "kernels/base/result.hpp"
#include "kernels/base/stats.hpp"
#include "kernels/base/units.hpp"
#include "kernels/learn/expert_block.hpp"
#include "kernels/learn/mixture_network.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct expert_swarm {
  std::shared_ptr<const learn::mixture_network> net;
  std::shared_ptr<const learn::expert_block> block;
  /// The samples of a trainer's step.
  std::function<std::vector<std::byte>(std::size_t trainer, std::uint64_t step)> samples;
  std::vector<std::byte> held_out;
  std::uint64_t evaluate_every = 0; ///< steps of trainer 0; 0: never
  std::size_t hosts = 8, trainers = 1;
  std::uint64_t steps = 100; ///< each trainer makes so many; 0: until `stop_time`
  actors::expert_search_limits search;
  kernels::amsgrad_config optimizer;
  std::uint64_t seed = 1;
  duration delay = std::chrono::milliseconds(25); ///< between two hosts, one way
  double rate = 100e6; ///< rate of each line, both ways, in bits per second
  duration batch_time = std::chrono::milliseconds(1), row_time = std::chrono::microseconds(100);
  duration step_time = std::chrono::milliseconds(10);
  duration timeout = std::chrono::seconds(5);
  duration detection_time = std::chrono::seconds(5);
  duration copy_every = std::chrono::seconds(30), renew = std::chrono::seconds(20),
           record_lifetime = std::chrono::minutes(1), share_every = std::chrono::seconds(10);
  std::size_t copies = 2;
  std::uint64_t most_staleness = 0;
  std::size_t sized = 0, copy_bytes = 0; ///< as in expert_server_config
  /// Means of exponential distributions: how long a host of experts lives, and how long it is away.
  /// A lifetime of 0 is for ever.
  duration lifetime{}, downtime = std::chrono::seconds(30);
  /// A share of the hosts dies at once, this long after the trainers began; 0: none.
  double lose_share = 0;
  duration lose_at{};
  duration stop_time = std::chrono::hours(1);
  /// Called after each step with the steps of all trainers. False ends the run. May be empty.
  std::function<bool(std::uint64_t steps)> proceed;
};

struct expert_figures {
  struct step {
    duration when{};
    double loss = 0;
    double seconds = 0;
  };
  struct evaluation {
    duration when{};
    std::uint64_t step = 0;
    double loss = 0, accuracy = 0;
  };
  std::vector<step> steps; ///< all trainers' steps, by time
  std::vector<evaluation> evaluations;
  duration began{}, ended{};
  std::uint64_t calls = 0, calls_lost = 0; ///< requests to experts
  std::uint64_t repeats = 0;               ///< repeated requests that were answered from a log
  std::uint64_t rows_unanswered = 0;       ///< rows and layers in which no expert answered
  std::uint64_t steps_unanswered = 0;      ///< steps with such a row
  std::uint64_t look_ups = 0;
  std::vector<double> look_up_seconds; ///< how long each step waited for the DHT
  std::uint64_t backward_batches = 0, backward_requests = 0, staleness_sum = 0;
  std::uint64_t deaths = 0, experts_orphaned = 0, experts_revived = 0, given_up = 0;
  std::vector<double> recovery_seconds;         ///< from a host's death to each expert's revival
  std::size_t experts = 0, experts_missing = 0; ///< at the end
  std::uint64_t bytes = 0, bypassed = 0, misbehaved = 0;
  bool stopped = false; ///< by `proceed`

  double mean_staleness() const noexcept {
    return backward_requests > 0
               ? static_cast<double>(staleness_sum) / static_cast<double>(backward_requests)
               : 0;
  }
};

/// Errors: no host or no trainer.
result<expert_figures> run_expert_swarm(const expert_swarm& what);

} // namespace shoal::scenarios
