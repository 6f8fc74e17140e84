// The contribution of a peer of the synchronous method to a round, and the residual that the peer
// keeps for the next round (error feedback).
//     given = (sum of the gradients + residual) / samples; weight: samples
//     top_k: the reducers get the largest values of `given`;
//         residual' = samples (given - sent)
//     PowerSGD: round 1: P = given Q; round 2: Q' = given^T P, and the rest;
//         residual' = samples (given - P Q'^T)
// The residual is in units of the sum of gradients, not of their mean. So a gradient that waits in
// the residual has the same total weight as if it had been sent at once. The number of samples that
// the peer computes meanwhile makes no difference. Summed over all rounds, weight times mean plus
// the final residuals equals the sum of all gradients in successful contributions.
//
// The residual changes only in a successful round, and only for values that the reducers took. If
// the round fails, the peer keeps its gradients. The residual belongs to the peer alone: it is not
// part of the shared state, and the peer drops it when it adopts another state.
//
// Source: Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient Compression
// Schemes", arXiv:1901.09847; Vogels et al., arXiv:1905.13727, algorithm 2.
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/training/workload.hpp"

#include <memory>
#include <span>
#include <vector>

namespace shoal::actors {

/// The codecs of a round, or of the two rounds of PowerSGD. Other methods use `first` only.
struct averaging_codecs {
  round_codecs first, second;
};

class contribution {
public:
  contribution(std::shared_ptr<const workload> work, averaging_codecs codecs)
      : work_(std::move(work)), codecs_(std::move(codecs)) {}

  /// Sets the values and codecs of `request`. `sum` [value_count] is the sum of `samples` gradients
  /// at the state `at`, which provides Q. With 0 samples, `sum` may be empty, and the contribution
  /// is zeros.
  void begin(const model_state& at, std::span<const double> sum, std::uint64_t samples,
             round_request& request);
  /// The round of the last begin() has succeeded.
  void averaged(const round_result& result);
  void forget() { residual_.clear(); }

  /// Empty, or [value_count].
  std::span<const float> residual() const noexcept { return residual_; }

private:
  /// The data of one round, shared with the group actor while the round lasts.
  struct round {
    std::uint64_t samples = 0;
    std::vector<float> given, p, q;
  };

  bool feeds_back() const {
    return codecs_.first.contributions && codecs_.first.contributions->drops_values();
  }
  payload zeros(std::uint64_t count);

  std::shared_ptr<const workload> work_;
  averaging_codecs codecs_;
  std::vector<float> residual_;
  std::shared_ptr<round> round_;
  payload zeros_;
};

} // namespace shoal::actors
