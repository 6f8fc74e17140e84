// Asynchronous training with stale gradients, on the virtual clock. Trainers share the parameters.
// Each computes a gradient from the current ones at once, and waits for an exponential time. Then
// the trainer makes a step with the gradient, which is stale by then. Computing takes no time, so
// the history is exact.
//   staleness of a step = steps of other trainers since its gradient was computed
// With T trainers its mean is T - 1 in the steady state: each step makes the other T - 1 gradients
// one step older (stale_figures::age_before).
// In a mixture the experts are not delayed. An expert sums the gradients of all trainers. Before a
// forward pass of its layer the expert makes a step, if it has seen `update_inputs` rows. The
// expert also does so if its first row was `update_passes` passes ago. A dense network has one
// expert in each layer, which always answers, and whose gradient is as stale as that of the rest.
//
// Source: Ryabinin and Gusev, arXiv:2002.04013, section 4.2, and the emulator of its authors.
#pragma once

#include "kernels/amsgrad.hpp"
#include "kernels/learn/mixture_network.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace shoal::scenarios {

struct stale_mixture {
  std::shared_ptr<const learn::network_ends> ends;
  std::size_t layers = 4;
  std::uint32_t experts = 64; ///< in each layer; 1: the dense network
  std::size_t chosen = 4;     ///< experts that a row gets
  double failure = 0;         ///< probability that an expert does not answer for a row
  double balance = 0;
  std::size_t trainers = 64, batch = 4;
  std::uint64_t updates = 20480;
  std::uint64_t evaluate_every = 1024;
  kernels::amsgrad_config optimizer;
  std::uint64_t update_inputs = 4, update_passes = 10;
  std::uint64_t seed = 1;
  /// Called before each evaluation with the number of updates. False ends the run. May be empty.
  std::function<bool(std::uint64_t updates)> proceed;

  bool dense() const noexcept { return experts == 1; }
};

/// A measurement after so many updates.
struct stale_point {
  std::uint64_t updates = 0;
  double training_loss = 0; ///< mean over the gradients that were computed since the last point
  double loss = 0, accuracy = 0; ///< held-out samples; all experts answer
};

struct stale_figures {
  std::vector<stale_point> curve;
  /// Counts the updates after the first 10 of each trainer.
  double mean_staleness = 0;
  std::uint64_t most_stale = 0, counted = 0;
  /// The ages in updates of all gradients under way, summed up, when counting began and at the end.
  /// Each update makes T - 1 of them one older, and takes one away:
  ///   mean_staleness = T - 1 + (age_before - age_after) / counted
  std::uint64_t age_before = 0, age_after = 0;
  std::uint64_t unanswered = 0; ///< rows and layers in which no expert answered
  std::uint64_t expert_steps = 0;
};

/// Requires: whole samples, at least one of each; chosen <= experts.
stale_figures run_stale_mixture(const stale_mixture& what, std::span<const std::byte> training,
                                std::span<const std::byte> held_out);

} // namespace shoal::scenarios
