#include "actors/experts/expert_batch.hpp"

#include "kernels/base/check.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

namespace shoal::actors {

payload expert_state::pack(std::size_t bytes) const {
  if (bytes != 0) return payload::size_only(bytes);
  std::vector<float> out(parameters);
  out.insert(out.end(), optimizer.begin(), optimizer.end());
  return payload{std::move(out)};
}

result<expert_state> expert_state::unpack(const payload& from, std::size_t parameters,
                                          std::uint64_t steps, std::size_t bytes,
                                          const expert_optimizer& optimizer) {
  const auto floats = parameters + optimizer_state_size(optimizer, parameters);
  expert_state out;
  out.steps = steps;
  out.parameters.resize(parameters);
  out.optimizer.resize(floats - parameters);
  if (bytes != 0) {
    if (from.size() != bytes || !from.is_size_only())
      return failure{"a copy of an expert has another size"};
    return out;
  }
  if (from.is_size_only() || from.size() != floats * sizeof(float))
    return failure{"a copy of an expert has another size"};
  const auto* at = from.bytes().data();
  if (parameters > 0) {
    std::memcpy(out.parameters.data(), at, parameters * sizeof(float));
    std::memcpy(out.optimizer.data(), at + parameters * sizeof(float),
                out.optimizer.size() * sizeof(float));
  }
  const auto negative = [&](float s) { return s < 0; };
  if (!kernels::all_finite(out.parameters) || !kernels::all_finite(out.optimizer) ||
      (out.optimizer.size() > parameters &&
       std::any_of(out.optimizer.begin() + static_cast<std::ptrdiff_t>(parameters),
                   out.optimizer.end(), negative)))
    return failure{"a copy of an expert has a value that no optimizer makes"};
  return out;
}

void task_pools::add(const expert_id& which, expert_task task) {
  SHOAL_CHECK(has_room(task), "a full server refuses requests");
  shares_.add(task.whose, task.bytes());
  const pool where{which, !task.gradient.empty()};
  auto& queue = pools_[where];
  if (queue.empty()) oldest_[last_ + 1] = where;
  queue.push_back({++last_, std::move(task)});
}

std::optional<task_pools::batch> task_pools::next() {
  if (oldest_.empty()) return std::nullopt;
  const auto where = oldest_.begin()->second;
  oldest_.erase(oldest_.begin());
  auto& queue = pools_.at(where);
  batch out{where.first, where.second, {}};
  std::size_t rows = 0;
  while (!queue.empty()) {
    const auto more = queue.front().what.x.size() / width_;
    if (!out.tasks.empty() && rows + more > most_rows_) break;
    rows += more;
    shares_.remove(queue.front().what.whose, queue.front().what.bytes());
    out.tasks.push_back(std::move(queue.front().what));
    queue.pop_front();
  }
  if (queue.empty())
    pools_.erase(where);
  else
    oldest_[queue.front().order] = where;
  return out;
}

std::vector<expert_task> task_pools::drop(const expert_id& which) {
  std::vector<expert_task> out;
  for (const bool backward : {false, true}) {
    const auto found = pools_.find({which, backward});
    if (found == pools_.end()) continue;
    oldest_.erase(found->second.front().order);
    for (auto& each : found->second) {
      shares_.remove(each.what.whose, each.what.bytes());
      out.push_back(std::move(each.what));
    }
    pools_.erase(found);
  }
  return out;
}

namespace {

struct computed_rows {
  std::vector<float> out; // the rows of all tasks, in order
  std::shared_ptr<const expert_state> state;
};

/// These tasks as one batch. Empty if a value is not finite.
std::optional<computed_rows> compute(const expert_work& what,
                                     const std::vector<std::size_t>& tasks) {
  std::vector<float> x, gradient;
  for (const auto i : tasks) {
    const auto& task = what.batch.tasks[i];
    x.insert(x.end(), task.x.begin(), task.x.end());
    gradient.insert(gradient.end(), task.gradient.begin(), task.gradient.end());
  }
  std::vector<float> sum(what.batch.backward ? what.state->parameters.size() : 0);
  auto out = what.batch.backward ? what.block->backward(what.state->parameters, x, gradient, sum)
                                 : what.block->forward(what.state->parameters, x);
  if (!out || !kernels::all_finite(*out) || !kernels::all_finite(sum)) return std::nullopt;
  if (!what.batch.backward) return computed_rows{std::move(*out), what.state};
  auto next = std::make_shared<expert_state>(*what.state);
  optimizer_step(what.optimizer, ++next->steps, sum, next->parameters, next->optimizer);
  if (!kernels::all_finite(next->parameters)) return std::nullopt;
  return computed_rows{std::move(*out), std::move(next)};
}

} // namespace

void compute(expert_work& what) {
  what.results.assign(what.batch.tasks.size(), {});
  std::vector<std::size_t> tasks(what.batch.tasks.size());
  std::iota(tasks.begin(), tasks.end(), std::size_t{0});
  auto done = compute(what, tasks);
  if (!done && tasks.size() > 1) {
    // Values of one trainer may be too large. They do not cost the others their answers.
    std::erase_if(tasks, [&](std::size_t i) { return !compute(what, {i}); });
    if (!tasks.empty()) done = compute(what, tasks);
  }
  if (!done) return;
  what.state = std::move(done->state);
  auto at = done->out.begin();
  for (const auto i : tasks) {
    const auto end = at + static_cast<std::ptrdiff_t>(what.batch.tasks[i].x.size());
    what.results[i].assign(at, end);
    at = end;
  }
}

} // namespace shoal::actors
