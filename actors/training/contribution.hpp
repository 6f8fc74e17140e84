// What a peer of the synchronous method gives to a round, and what it keeps of its gradients for
// the next one (error feedback).
//   given = (sum of the gradients + residual) / samples; weight: samples
//   top_k       what the reducers are given are the largest values of `given`;   residual' =
//   samples (given - what they are given) PowerSGD    round 1: P = given Q; round 2: Q' = given^T
//   P, and the rest;     residual' = samples (given - P Q'^T)
// The residual is in the units of the sum, not of the mean: a sample's gradient that waits in it
// counts later as it would have counted now,
//   once, by what its round weighs, whatever else the peer has computed until then. (A residual of
//   the mean would count for as many samples as the peer has next time.) So the sums over all
//   rounds of weight times mean, and what is left in the residuals, are the sum of all gradients
//   that were taken.
// It changes only in a round that ended well, and only where what we gave was taken, value by
// value; elsewhere it stays, as do the gradients
//   if the round failed, and as they are lost without a residual where others went on without them.
//   It is the peer's own: it belongs to nobody else's state and is forgotten when the peer adopts
//   another one.
// Source: Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient Compression
// Schemes", arXiv:1901.09847; Vogels et al., arXiv:1905.13727, algorithm 2.
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/training/workload.hpp"

#include <memory>
#include <span>
#include <vector>

namespace shoal::actors {

/// How what is averaged is written, in each of the two rounds of PowerSGD; otherwise `first` is
/// all.
struct averaging_codecs {
  round_codecs first, second;
};

class contribution {
public:
  contribution(std::shared_ptr<const workload> work, averaging_codecs codecs)
      : work_(std::move(work)), codecs_(std::move(codecs)) {}

  /// Sets what `request` says of values and codecs. `sum` [value_count] of `samples` gradients at
  /// the state `at`, whose Q counts; with no samples it may be empty, and zeros are given.
  void begin(const model_state& at, std::span<const double> sum, std::uint64_t samples,
             round_request& request);
  /// The round of the last begin() has ended well.
  void averaged(const round_result& result);
  void forget() { residual_.clear(); }

  /// Empty, or [value_count].
  std::span<const float> residual() const noexcept { return residual_; }

private:
  /// What one round is about; shared with the group's actor while it lasts.
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
