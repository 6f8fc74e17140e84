// The samples that a peer has a lease on, from their arrival until a round has averaged them. A
// plain state machine.
//     ready --take, start--> running --end_job, add_computed--> computed --begin_round-->
//     in the round --end_round--> not held
// A failed round puts its samples back to `computed` (retry_round). A peer that changes its state
// gives up all of them (give_up).
//
// A peer that steps locally cannot take a sample out of its parameters when it loses the lease
// (lose_computed). If it gets the lease back, the sample is computed already (add_ready).
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/payload.hpp"
#include "kernels/base/units.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace shoal::actors {

/// The samples of one compute job.
struct sample_job {
  struct block {
    sample_range range;
    payload data;
  };
  std::vector<block> blocks;
  std::uint64_t samples = 0;
  duration started{};
  bool discard = false; ///< the peer has left the state that the job computes with

  std::vector<sample_range> ranges() const;
};

class held_samples {
public:
  // Ready: streamed by the shard, and not computed yet.
  std::uint64_t ready() const;
  bool none_ready() const noexcept { return ready_.empty(); }
  /// `data` has `sample_bytes` for each sample of `range`. Samples that are held already, or were
  /// lost after they had been computed, are left out.
  void add_ready(const sample_range& range, const payload& data, std::uint64_t sample_bytes);
  /// Drops each ready block that overlaps one of `ranges`.
  void drop_ready(const std::vector<sample_range>& ranges);
  /// Takes all ready samples out, in order to return them to the shard.
  std::vector<sample_range> take_ready();

  // Running: part of the compute job under way.
  /// Takes at most `most` ready samples out. Requires: some are ready.
  sample_job take(std::uint64_t most, std::uint64_t sample_bytes, duration now);
  void start(sample_job job) { running_ = std::move(job); }
  const std::optional<sample_job>& running() const noexcept { return running_; }
  /// The job that was running; empty if there was none.
  std::optional<sample_job> end_job() { return std::exchange(running_, std::nullopt); }

  // Computed: the gradients are part of the sum, and in no round yet.
  void add_computed(const std::vector<sample_range>& ranges, std::uint64_t count);
  bool none_computed() const noexcept { return computed_.empty(); }
  /// Samples that count towards the next round, or that a failed round has not averaged yet.
  std::uint64_t counted() const noexcept { return counted_; }
  /// Stops counting this many samples.
  void uncount(std::uint64_t count) { counted_ -= std::min(counted_, count); }
  /// The counted samples and those of a running job whose result will count.
  std::uint64_t promised() const {
    return counted_ + (running_ && !running_->discard ? running_->samples : 0);
  }

  // In the round: part of the contribution under way.
  void begin_round() { in_round_ = std::exchange(computed_, {}); }
  void retry_round();
  void end_round();
  const std::vector<sample_range>& in_round() const noexcept { return in_round_; }
  std::vector<sample_range> take_in_round() { return std::exchange(in_round_, {}); }

  // Functions for all phases.
  /// Takes out the samples that are computed or in the round, and marks the running job to be
  /// discarded.
  std::vector<sample_range> give_up();
  /// Takes those of `ranges` out that are computed or in the round.
  std::vector<sample_range> drop_computed(const std::vector<sample_range>& ranges);
  /// The same. The samples are remembered until the next round has averaged the parameters.
  std::vector<sample_range> lose_computed(const std::vector<sample_range>& ranges);
  /// All samples that are held; their leases are to be renewed.
  std::vector<sample_range> all() const;

private:
  /// Puts the remembered samples of `range` back to where they were.
  void regain(const sample_range& range);

  std::deque<sample_job::block> ready_;
  std::optional<sample_job> running_;
  std::vector<sample_range> computed_;
  std::vector<sample_range> in_round_;
  // Taken out of the two lists above by lose_computed().
  std::vector<sample_range> lost_computed_;
  std::vector<sample_range> lost_in_round_;
  std::uint64_t counted_ = 0;
};

} // namespace shoal::actors
