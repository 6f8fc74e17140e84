// Shares states between the peers of one process that hold the same bits, so that memory does not
// grow with the number of peers. A step that several peers take is computed once. The pool saves
// memory and time only: a joiner still downloads every byte before it asks for a state here.
#pragma once

#include "actors/training/workload.hpp"
#include "actors/trust/chain.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace shoal::actors {

/// Thread safety: threads may call all functions concurrently.
class state_pool {
public:
  /// `start` replaces the workload's initial state, if it is given.
  explicit state_pool(std::shared_ptr<const workload> work, bool share = true,
                      std::optional<model_state> start = {});

  const workload& work() const noexcept { return *work_; }
  const std::shared_ptr<const workload>& shared_work() const noexcept { return work_; }

  /// The state with which peers begin, as one shared copy.
  state_ptr initial();

  /// workload::step, with epoch, id and samples set. Equal arguments (`before`, bits of the
  /// gradient) give one shared result. An exception of the workload goes to all callers that wait
  /// for the same step.
  state_ptr step(const state_ptr& before, const payload& mean_gradient, const state_id& after,
                 std::uint64_t weight);

  /// The gradient that led from `before` to `after`. All holders of these two states share one
  /// copy; without one, the result is `own`.
  payload gradient_between(const state_ptr& before, const state_ptr& after, payload own);

  /// The root of a state's bits: state_download::version() of its offer in chunks of this size. It
  /// is computed once for each state, which takes about a second for a gigabyte.
  id128 root_of(const state_ptr& state, std::uint64_t chunk_bytes);

  /// The copy of this proven step that all peers of the process share.
  step_ptr shared_step(step_ptr step);

  /// A peer has reached this state. A step alone does not count for best(): a thread may compute it
  /// earlier or later than the virtual time at which it ends.
  void offer(const state_ptr& state);

  /// The best state that was ever offered. A state on the leading branch beats
  /// one on another branch if the steps of both are proven (actors/trust/chain.hpp). Otherwise the
  /// highest epoch counts, then the most samples, then the smallest id.
  state_ptr best();

  /// `state` with the bytes of a pooled state that has the same bits; `state` itself if there is
  /// none.
  state_ptr intern(state_ptr state);

private:
  struct key {
    state_id before, after;
    auto operator<=>(const key&) const = default;
  };

  struct slot {
    payload gradient;
    state_ptr state;
    std::exception_ptr thrown;
    bool computing() const noexcept { return !state && !thrown; }
  };
  /// The step from these states by a gradient of the same bits. nullptr: no thread has begun one.
  std::shared_ptr<slot> step_by(const key& which, const payload& gradient) const;

  std::shared_ptr<const workload> work_;
  bool share_;
  std::optional<model_state> start_;
  /// True if `a` is better than `b`.
  bool leads(const model_state& a, const model_state& b) const;

  std::mutex mutex_;
  std::condition_variable computed_;
  state_ptr initial_, best_;
  using steps = std::multimap<key, std::shared_ptr<slot>>;
  steps steps_;
  std::deque<steps::iterator> order_; // oldest first
  std::map<state_id, std::weak_ptr<const model_state>> known_;
  std::mutex roots_mutex_; // held while a root is computed, so that others wait for it
  std::map<const model_state*, std::pair<std::weak_ptr<const model_state>, id128>> roots_;
  std::map<state_id, std::weak_ptr<const certified_step>> proven_; // by the state after the step
};

} // namespace shoal::actors
