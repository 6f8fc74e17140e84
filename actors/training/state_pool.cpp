#include "actors/training/state_pool.hpp"

#include "actors/training/state_object.hpp"
#include "kernels/base/digest.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace shoal::actors {

namespace {
constexpr std::size_t kept_steps = 8;
/// Branches that parted longer ago are compared by their epochs.
constexpr std::size_t most_compared = 4096;
} // namespace

state_pool::state_pool(std::shared_ptr<const workload> work, bool share,
                       std::optional<model_state> start)
    : work_(std::move(work)), share_(share), start_(std::move(start)) {}

state_ptr state_pool::initial() {
  std::lock_guard guard(mutex_);
  if (!initial_ || !share_) {
    auto fresh = start_ ? *start_ : work_->initial();
    if (!start_) {
      auto content = content_of(fresh);
      fresh.id = id128::from(
          hasher{}.add(std::string_view{"initial"}).add(content.high).add(content.low).finish());
    }
    initial_ = std::make_shared<const model_state>(std::move(fresh));
    known_[initial_->id] = initial_;
  }
  return initial_;
}

state_ptr state_pool::step(const state_ptr& before, const payload& mean_gradient,
                           const state_id& after, std::uint64_t weight) {
  auto compute = [&] {
    auto next = work_->step(*before, mean_gradient);
    next.epoch = before->epoch + 1;
    next.id = after;
    next.samples = before->samples + weight;
    if (next.method_state.empty()) next.method_state = before->method_state;
    return std::make_shared<const model_state>(std::move(next));
  };
  if (!share_) return compute();
  const key which{before->id, after};
  std::unique_lock lock(mutex_);
  if (auto step = step_by(which, mean_gradient)) {
    // The computing thread has started already and waits for no other, so this wait ends. The map
    // may have lost the entry when it does.
    computed_.wait(lock, [&] { return !step->computing(); });
    if (step->thrown) std::rethrow_exception(step->thrown);
    return step->state;
  }
  const auto step = std::make_shared<slot>(slot{mean_gradient, {}, {}});
  const auto at = steps_.emplace(which, step);
  lock.unlock();
  state_ptr next;
  try {
    next = compute();
  } catch (...) {
    lock.lock();
    step->thrown = std::current_exception();
    steps_.erase(at);
    computed_.notify_all();
    throw;
  }
  lock.lock();
  step->state = next;
  known_[after] = next;
  order_.push_back(at);
  computed_.notify_all();
  while (order_.size() > kept_steps) {
    steps_.erase(order_.front());
    order_.pop_front();
  }
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  return next;
}

std::shared_ptr<state_pool::slot> state_pool::step_by(const key& which,
                                                      const payload& gradient) const {
  const auto [first, last] = steps_.equal_range(which);
  const auto found =
      std::find_if(first, last, [&](const auto& one) { return one.second->gradient == gradient; });
  return found == last ? nullptr : found->second;
}

payload state_pool::gradient_between(const state_ptr& before, const state_ptr& after, payload own) {
  std::lock_guard guard(mutex_);
  const auto [first, last] = steps_.equal_range({before->id, after->id});
  const auto found =
      std::find_if(first, last, [&](const auto& one) { return one.second->state == after; });
  return found == last ? own : found->second->gradient;
}

bool state_pool::leads(const model_state& a, const model_state& b) const {
  // The steps of both from their last common state on, newest first.
  struct walk {
    chain_point at;
    std::vector<step_ptr> steps;
  };
  walk ours{{a.epoch, a.id}, {}}, theirs{{b.epoch, b.id}, {}};
  while (ours.at != theirs.at) {
    auto& further = ours.at.epoch >= theirs.at.epoch ? ours : theirs;
    const auto found = proven_.find(further.at.state);
    auto step = found == proven_.end() ? nullptr : found->second.lock();
    if (!step || step->after != further.at || further.steps.size() >= most_compared) {
      const auto rank = [](const model_state& s) {
        return std::tuple(s.epoch, s.samples, ~s.id.high, ~s.id.low);
      };
      return rank(a) > rank(b);
    }
    further.at = step->before;
    further.steps.push_back(std::move(step));
  }
  if (ours.steps.empty() || theirs.steps.empty()) return theirs.steps.empty() && a.epoch > b.epoch;
  for (auto* one : {&ours, &theirs}) std::reverse(one->steps.begin(), one->steps.end());
  return weight_of(ours.at, ours.steps).leads(weight_of(theirs.at, theirs.steps));
}

void state_pool::offer(const state_ptr& state) {
  std::lock_guard guard(mutex_);
  if (!best_ || leads(*state, *best_)) best_ = state;
}

state_ptr state_pool::best() {
  std::lock_guard guard(mutex_);
  return best_ ? best_ : initial_;
}

state_ptr state_pool::intern(state_ptr state) {
  if (!share_) return state;
  std::lock_guard guard(mutex_);
  auto found = known_.find(state->id);
  if (found == known_.end()) return state;
  auto pooled = found->second.lock();
  if (!pooled || content_of(*pooled) != content_of(*state)) return state;
  if (pooled->epoch == state->epoch && pooled->step == state->step &&
      pooled->samples == state->samples)
    return pooled;
  // A Moshpit peer that skips a round keeps its state for the next epoch. Only the bytes of the two
  // states are the same.
  auto same = *state;
  same.parameters = pooled->parameters;
  same.optimizer = pooled->optimizer;
  same.method_state = pooled->method_state;
  return std::make_shared<const model_state>(std::move(same));
}

id128 state_pool::root_of(const state_ptr& state, std::uint64_t chunk_bytes) {
  std::lock_guard guard(roots_mutex_);
  std::erase_if(roots_, [](const auto& one) { return one.second.first.expired(); });
  auto [at, is_new] = roots_.try_emplace(state.get(), state, id128{});
  if (is_new)
    at->second.second = state_download::version(shared_object(*state, chunk_bytes).offer());
  return at->second.second;
}

step_ptr state_pool::shared_step(step_ptr step) {
  std::lock_guard guard(mutex_);
  if (proven_.size() >= 2 * chain::most_steps)
    std::erase_if(proven_, [](const auto& one) { return one.second.expired(); });
  auto& known = proven_[step->after.state];
  if (auto first = known.lock()) return first;
  known = step;
  return step;
}

} // namespace shoal::actors
