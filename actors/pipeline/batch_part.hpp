// A trainer's part of a batch of a pipeline: which samples its micro-batches have, and what came of
// them. No actor and no clock.
#pragma once

#include "actors/ids.hpp"
#include "actors/pipeline/micro_batch.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

namespace shoal::actors {

class batch_part {
public:
  batch_part() = default;
  /// The samples [first, end) in the order of the trainer's stream.
  batch_part(std::uint64_t first, std::uint64_t end) : first_(first), next_(first), end_(end) {}

  std::uint64_t next() const noexcept { return next_; }
  std::uint64_t taken() const noexcept { return next_ - first_; }
  std::uint64_t left() const noexcept { return end_ - next_; }
  std::uint64_t size() const noexcept { return end_ - first_; }

  /// The next `count` samples become a micro-batch. `ranges`: their indices in the data shard.
  void add(std::uint64_t number, std::uint64_t count, std::vector<sample_range> ranges);
  void set_loss(std::uint64_t number, double loss) { losses_[number] = loss; }
  /// The sum over the samples of the micro-batch; 0 before set_loss().
  double loss(std::uint64_t number) const;
  double loss_sum() const;

  /// The micro-batch has counted in every stage. Returns its samples for the first time, and
  /// nothing later: a micro-batch whose gradients were lost counts again.
  std::vector<sample_range> trained(std::uint64_t number);

  /// The trainer reports these samples no more.
  void drop(std::span<const sample_range> lost);

  struct share {
    std::vector<sample_range> samples;
    std::uint64_t count = 0;
    double loss_sum = 0;
  };
  /// The samples by the number of hops in which they have counted.
  std::map<std::uint32_t, share>
  by_hops(const std::map<std::uint64_t, micro_batch>& micro_batches) const;

private:
  std::uint64_t first_ = 0, next_ = 0, end_ = 0;
  std::map<std::uint64_t, double> losses_;                    // by micro-batch, as below
  std::map<std::uint64_t, std::vector<sample_range>> ranges_; // empty without a data shard
  std::set<std::uint64_t> trained_;
};

} // namespace shoal::actors
