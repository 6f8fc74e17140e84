#include "actors/pipeline/sent_tasks.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

namespace {
std::size_t direction(micro_batch::task what) {
  return what.kind == micro_batch::task_kind::backward ? 1 : 0;
}
} // namespace

sent_tasks::sent_tasks(std::shared_ptr<const stage_model> model, duration forward_timeout,
                       duration backward_timeout)
    : model_(std::move(model)), times_{stage_times(mean_deadline(forward_timeout)),
                                       stage_times(mean_deadline(backward_timeout))} {}

std::uint64_t sent_tasks::token_of(std::uint64_t number, micro_batch::task what) const {
  return (number * model_->hops() + what.hop) * 2 + direction(what);
}

duration sent_tasks::timeout_of(micro_batch::task what) const {
  return times_[direction(what)].deadline(model_->stage_of(what.hop));
}

sent_tasks::timer sent_tasks::send(std::uint64_t number, micro_batch::task what, peer_id to,
                                   duration now) {
  auto& course = courses_[number];
  if (course.tries.empty()) course.begun = now;
  const timer out{timeout_of(what), token_of(number, what)};
  ++course.tries[out.token];
  sent_[out.token] = {number, what, to, now, now + out.wait};
  return out;
}

/// The peer has answered now, or will not have answered by now.
void sent_tasks::took(const one& of, duration now) {
  times_[direction(of.task)].answered(model_->stage_of(of.task.hop), now - of.sent);
}

std::optional<sent_tasks::one> sent_tasks::silent(std::uint64_t token, duration now) {
  const auto late = sent_.find(token);
  if (late == sent_.end() || late->second.until > now) return std::nullopt;
  took(late->second, now);
  return late->second;
}

void sent_tasks::answered(std::uint64_t number, micro_batch::task what, peer_id by,
                          duration computed, duration now) {
  const auto found = sent_.find(token_of(number, what));
  if (found == sent_.end()) return;
  took(found->second, now);
  if (const auto course = courses_.find(number); course != courses_.end())
    course->second.tasks.push_back({what.hop, model_->stage_of(what.hop), direction(what) == 1, by,
                                    found->second.sent, now, computed,
                                    course->second.tries[found->first]});
  sent_.erase(found);
}

void sent_tasks::drop(std::uint64_t number, micro_batch::task what, peer_id peer) {
  const auto found = sent_.find(token_of(number, what));
  if (found != sent_.end() && found->second.peer == peer) sent_.erase(found);
}

std::vector<sent_tasks::one> sent_tasks::drop_all_of(peer_id peer) {
  std::vector<one> out;
  std::erase_if(sent_, [&](const auto& each) {
    if (each.second.peer != peer) return false;
    out.push_back(each.second);
    return true;
  });
  return out;
}

void sent_tasks::clear() {
  sent_.clear();
  courses_.clear();
  slowest_ = {};
}

void sent_tasks::done(const micro_batch& which, std::uint64_t epoch, duration now) {
  const auto course = courses_.find(which.number());
  if (course == courses_.end()) return;
  const auto begun = course->second.begun;
  if (now - begun > slowest_.done - slowest_.begun)
    slowest_ = {epoch, which.number(), which.count(), begun, now, std::move(course->second.tasks)};
  courses_.erase(course);
}

std::optional<slowest_micro_batch> sent_tasks::take_slowest() {
  if (slowest_.tasks.empty()) return std::nullopt;
  return std::exchange(slowest_, {});
}

} // namespace shoal::actors
