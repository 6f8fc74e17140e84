#include "actors/inference/blocking_passes.hpp"

#include "actors/inference/activations.hpp"

#include <utility>

namespace shoal::actors {

namespace {

payload payload_of(std::span<const float> from) {
  return payload{std::vector<float>(from.begin(), from.end())};
}

} // namespace

result<layers_done> blocking_passes::wait_for(std::uint64_t pass) {
  std::unique_lock guard(guard_);
  while (!answers_.contains(pass) && !closed_) {
    if (!how_.wait) {
      changed_.wait(guard);
      continue;
    }
    guard.unlock();
    how_.wait();
    guard.lock();
  }
  const auto found = answers_.find(pass);
  if (found == answers_.end()) return failure{*closed_};
  auto out = std::move(found->second);
  answers_.erase(found);
  if (!out.why.empty()) return failure{out.why};
  return out;
}

result<blocking_passes::passed> blocking_passes::forward(learn::layer_range layers,
                                                         learn::pass_shape shape,
                                                         std::span<const float> activations,
                                                         std::span<const float> prompts) {
  if (layers.first < 0 || layers.first >= layers.last || layers.last > how_.layers)
    return failure{"there are no layers " + std::to_string(layers.first) + ":" +
                   std::to_string(layers.last) +
                   ": the model has the layers 0:" + std::to_string(how_.layers)};
  if (shape.samples < 1 || shape.time < 1 || activations.size() != shape.tokens() * how_.width)
    return failure{"the activations are not [samples, time, width]"};
  const auto each = static_cast<std::size_t>(layers.last - layers.first) * how_.width;
  if (prompts.size() % each != 0) return failure{"the prompts are not [layers, length, width]"};
  if (const auto why = closed()) return failure{*why};
  layers_forward m;
  m.token = ++last_;
  m.first = static_cast<std::uint32_t>(layers.first);
  m.last = static_cast<std::uint32_t>(layers.last);
  m.samples = static_cast<std::uint32_t>(shape.samples);
  m.time = static_cast<std::uint32_t>(shape.time);
  m.activations = payload_of(activations);
  m.prompt_length = static_cast<std::uint32_t>(prompts.size() / each);
  m.prompts = payload_of(prompts);
  m.adapter = how_.adapter;
  how_.forward(std::move(m));
  const auto done = wait_for(last_);
  if (!done) return failure{done.error()};
  open_.emplace(last_, activations.size());
  return passed{last_, floats_of(done->activations)};
}

result<blocking_passes::gradients> blocking_passes::backward(std::uint64_t pass,
                                                             std::span<const float> gradient) {
  const auto found = open_.find(pass);
  if (found == open_.end()) return failure{"there is no pass " + std::to_string(pass)};
  if (gradient.size() != found->second)
    return failure{"a gradient of " + std::to_string(gradient.size()) +
                   " values for an output of " + std::to_string(found->second)};
  if (const auto why = closed()) return failure{*why};
  open_.erase(found);
  how_.backward({pass, payload_of(gradient)});
  const auto done = wait_for(pass);
  if (!done) return failure{done.error()};
  return gradients{floats_of(done->activations), floats_of(done->prompts)};
}

void blocking_passes::forget(std::uint64_t pass) {
  if (open_.erase(pass) > 0 && !closed()) how_.backward({pass, {}});
}

std::optional<std::string> blocking_passes::closed() {
  const std::lock_guard guard(guard_);
  return closed_;
}

void blocking_passes::answer(const layers_done& m) {
  const std::lock_guard guard(guard_);
  answers_.insert_or_assign(m.token, m);
  changed_.notify_all();
}

void blocking_passes::close(const std::string& why) {
  const std::lock_guard guard(guard_);
  closed_ = why;
  changed_.notify_all();
}

} // namespace shoal::actors
