// An expert with its optimizer, and the requests that wait for experts. No actor and no clock, so a
// compute thread may run a batch.
//
// Each expert has a pool for forward passes and one for backward passes. A server computes a batch
// of the pool whose oldest request has waited the longest. A backward pass computes the forward
// pass again, and makes one step of the optimizer for the whole batch.
// Source: Ryabinin and Gusev, arXiv:2002.04013, section 3.3.
#pragma once

#include "actors/experts/expert_optimizer.hpp"
#include "actors/experts/expert_record.hpp"
#include "actors/experts/request_log.hpp"
#include "actors/queue_shares.hpp"
#include "kernels/base/result.hpp"
#include "kernels/learn/expert_block.hpp"

#include <caf/actor.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace shoal::actors {

/// The parameters of an expert and the state of its optimizer after `steps` steps. Immutable, so
/// that a copy can travel while the next step is computed.
struct expert_state {
  std::uint64_t steps = 0;
  std::vector<float> parameters, optimizer;

  /// The bytes for a copy on another host. `bytes` != 0: of that size, without values.
  payload pack(std::size_t bytes = 0) const;
  /// Errors: another size than `parameters` floats and their optimizer need, or a value that is not
  /// finite.
  static result<expert_state> unpack(const payload& from, std::size_t parameters,
                                     std::uint64_t steps, std::size_t bytes = 0,
                                     const expert_optimizer& optimizer = {});
};

/// A request that waits.
struct expert_task {
  request_log::key key;
  member_id whose;
  caf::actor reply_to;
  std::uint64_t request = 0;
  std::uint64_t version = 0;      ///< steps of the expert when the forward pass was computed
  std::vector<float> x, gradient; ///< [rows, width]; a forward pass has no gradient
  duration came{};
  std::size_t bytes() const noexcept { return (x.size() + gradient.size()) * sizeof(float); }
};

/// The waiting requests of all experts of a server. A plain state machine.
class task_pools {
public:
  /// Limits: rows of a batch with several requests, and the requests that wait.
  task_pools(std::size_t width, std::size_t most_rows, queue_shares waiting)
      : width_(width), most_rows_(most_rows), shares_(std::move(waiting)) {}

  bool has_room(const expert_task& task) const { return shares_.fits(task.whose, task.bytes()); }
  std::size_t waiting() const noexcept { return shares_.size(); }
  /// Requires: has_room(task).
  void add(const expert_id& which, expert_task task);

  struct batch {
    expert_id which;
    bool backward = false;
    std::vector<expert_task> tasks;
  };
  /// The oldest requests of the pool that has the oldest one. Empty if none waits.
  std::optional<batch> next();
  /// Removes the requests of an expert that is not here any more.
  std::vector<expert_task> drop(const expert_id& which);

private:
  struct waiting_task {
    std::uint64_t order = 0;
    expert_task what;
  };
  using pool = std::pair<expert_id, bool>; // with true: backward
  std::size_t width_, most_rows_;
  queue_shares shares_;
  std::uint64_t last_ = 0;
  std::map<pool, std::deque<waiting_task>> pools_;
  std::map<std::uint64_t, pool> oldest_; // by the order of the first request of each pool
};

/// The computation of a batch. `state` is replaced after a backward pass.
struct expert_work {
  std::shared_ptr<const learn::expert_block> block;
  expert_optimizer optimizer;
  std::shared_ptr<const expert_state> state;
  task_pools::batch batch;
  /// The output of each task, or the gradient with respect to its input. Empty if the task leads to
  /// a value that is not finite; the state is then as without it.
  std::vector<std::vector<float>> results;
  duration queued{}, time{}; ///< as in expert_batch_done
};
void compute(expert_work& what);

} // namespace shoal::actors
