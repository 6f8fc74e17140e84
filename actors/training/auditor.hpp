// The contributions that a peer computes again, as a validator or a juror of a Byzantine-tolerant
// round (actors/averaging/guard.hpp). The peer asks its data shard for copies of the samples, which
// need no lease. It computes the gradient at the state of that round, on its device, in place of
// its next batch. The blocks keep their order and their bounds, so honest bits are equal.
//
// A plain state machine; its owner passes the time.
#pragma once

#include "actors/averaging/audit_duty.hpp"
#include "actors/training/held_samples.hpp"
#include "actors/training/workload.hpp"

#include <caf/actor.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace shoal::actors {

class auditor {
public:
  static constexpr std::size_t most_tasks = 64;
  static constexpr std::uint64_t most_samples = std::uint64_t{1} << 20; ///< in one contribution

  struct settings {
    std::uint64_t sample_bytes = 0;
    bool size_only = false;
    duration ask_again{}; ///< the time after which missing samples are asked for again
    duration give_up{};   ///< the time after which missing samples are given up
  };
  struct task {
    std::shared_ptr<const recomputation> what;
    caf::actor reply_to;
    state_ptr at; ///< the state of the round
    duration since{};
    std::vector<sample_job::block> blocks; ///< complete in the tasks of next()
  };

  explicit auditor(settings how) : how_(how) {}

  /// False if the task is none: too many are waiting, or its samples are not those that it weighs.
  bool add(std::shared_ptr<const recomputation> what, caf::actor reply_to, state_ptr at,
           duration now);
  /// The samples to ask the shard for now.
  std::vector<sample_range> wanted(duration now);
  /// True if the copies complete a task. Copies of other samples are ignored.
  bool came(const sample_range& range, const payload& data);
  /// Takes a complete task out.
  std::optional<task> next();
  /// Takes the tasks out whose samples did not come in time, and those that are too late.
  std::vector<task> expired(duration now);
  /// True if nobody waits for the answer any more: the case of a round ends after two duty times
  /// (actors/averaging/guard_cases.cpp).
  bool is_late(const task& what, duration now) const noexcept {
    return now - what.since >= 2 * how_.give_up;
  }
  bool waits() const noexcept { return !open_.empty(); }
  void clear() { open_.clear(); }

private:
  struct block {
    sample_range range;
    std::vector<std::byte> bytes; // empty with size_only
    std::vector<bool> has;
    std::uint32_t missing = 0;
  };
  struct open_task {
    task of;
    std::vector<block> blocks;
    duration asked{duration::min()};
    bool complete() const;
  };

  settings how_;
  std::deque<open_task> open_; // oldest first
};

/// The contribution of a task, as a peer computes its own: the mean of the gradients, summed block
/// by block. Between two blocks, other work may use the device: an update of the parameters does
/// not wait for a whole contribution. Requires: the blocks are complete.
class recomputing {
public:
  explicit recomputing(auditor::task what) : what_(std::move(what)) {}

  const auditor::task& what() const noexcept { return what_; }
  bool done() const noexcept { return next_ == what_.blocks.size(); }
  /// The number of samples of the next block. Requires: not done().
  std::uint64_t next_samples() const { return what_.blocks[next_].range.count; }
  /// Requires: not done(). Thread safety: a compute thread may call it.
  void compute_next(const workload& work);
  /// The mean of the gradients. Requires: done().
  payload take() { return std::move(mean_); }

private:
  auditor::task what_;
  std::size_t next_ = 0;
  std::vector<double> sum_;
  payload mean_;
};

} // namespace shoal::actors
