// Peers of one process that hold the same bits share them, so that memory does not grow with the
// number of peers; and a step that several peers take alike is computed once. Nothing else is
// shared: a joiner has paid for every byte before it may ask for a state here.
#pragma once

#include "actors/training/workload.hpp"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace shoal::actors {

/// Thread safety: all functions.
class state_pool {
public:
  /// `start`: what peers begin with, instead of the workload's initial state.
  explicit state_pool(std::shared_ptr<const workload> work, bool share = true,
                      std::optional<model_state> start = {});

  const workload& work() const noexcept { return *work_; }
  const std::shared_ptr<const workload>& shared_work() const noexcept { return work_; }

  /// The state that peers begin with; one copy.
  state_ptr initial();

  /// workload::step, with epoch, id and samples set. Equal (before, gradient bits) give one result.
  /// Throws what the workload throws, to everybody who waits for the same step.
  state_ptr step(const state_ptr& before, const payload& mean_gradient, const state_id& after,
                 std::uint64_t weight);

  /// The gradient that led from `before` to `after`: one copy for all who hold these two, else
  /// `own`.
  payload gradient_between(const state_ptr& before, const state_ptr& after, payload own);

  /// A state that a peer has reached on its own.
  void offer(const state_ptr& state);

  /// The best state that was ever reached by a step, or offered: highest epoch, most samples,
  /// smallest id.
  state_ptr best();

  /// `state` in the bytes of the pooled one with these bits if there is one, else itself.
  state_ptr intern(state_ptr state);

private:
  struct key {
    state_id before, after;
    id128 gradient;
    auto operator<=>(const key&) const = default;
  };

  std::shared_ptr<const workload> work_;
  bool share_;
  std::optional<model_state> start_;
  void remember(const state_ptr& state);

  std::mutex mutex_;
  std::condition_variable computed_;
  state_ptr initial_, best_;
  struct slot {
    state_ptr state;
    payload gradient;
    std::exception_ptr thrown;
    bool computing() const noexcept { return !state && !thrown; }
  };
  std::map<key, std::shared_ptr<slot>> steps_;
  std::deque<key> order_; // oldest first
  std::map<state_id, std::weak_ptr<const model_state>> known_;
};

} // namespace shoal::actors
