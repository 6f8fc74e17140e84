#include "actors/inference/batch.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <utility>

namespace shoal::actors {

namespace {

bool covers(const inference_job& job, std::uint32_t layer) {
  return job.layers.first <= layer && layer < job.layers.last;
}

/// Adds the prompts of a layer to the first tokens of each sequence.
void add_prompts(inference_job& job, std::uint32_t layer, std::size_t width) {
  const auto floats = job.prompt_length * width;
  const float* added = job.prompts.data() + (layer - job.layers.first) * floats;
  for (std::size_t s = 0; s < job.samples; ++s)
    for (std::size_t i = 0; i < floats; ++i) job.values[s * job.time * width + i] += added[i];
}

/// The steps of one set of layers, layer by layer, all sessions together.
void compute_steps(inference_batch& what, const served_layers& model, layer_span range) {
  for (auto layer = range.first; layer < range.last; ++layer) {
    const auto& block = model.of(layer);
    std::vector<learn::cached_step> steps;
    std::vector<inference_job*> of;
    for (auto& job : what.jobs)
      if (!job.is_pass && !job.failed && job.model.get() == &model && covers(job, layer)) {
        if (job.prompt_length > 0) add_prompts(job, layer, block.width());
        steps.push_back({job.caches[layer - job.layers.first].get(), job.time, job.values});
        of.push_back(&job);
      }
    if (steps.empty() || block.extend(steps)) continue;
    // One session's values have overflowed. The others go on.
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (!block.extend({&steps[i], 1})) of[i]->failed = true;
  }
}

void compute_pass(inference_job& job) {
  const learn::pass_shape shape{static_cast<std::int64_t>(job.samples),
                                static_cast<std::int64_t>(job.time)};
  const auto apply = [&](auto&& made) {
    if (made)
      job.values = std::move(*made);
    else
      job.failed = true;
  };
  std::vector<std::vector<float>> entered;
  for (auto layer = job.layers.first; layer < job.layers.last && !job.failed; ++layer) {
    const auto& block = job.model->of(layer);
    if (job.prompt_length > 0) add_prompts(job, layer, block.width());
    if (!job.gradient.empty()) entered.push_back(job.values);
    apply(block.forward(shape, job.values));
  }
  if (job.gradient.empty() || job.failed) return;
  job.values = job.gradient;
  for (auto layer = job.layers.last; layer-- > job.layers.first && !job.failed;) {
    const auto& block = job.model->of(layer);
    const auto at = layer - job.layers.first;
    apply(block.backward(shape, entered[at], job.values));
    if (job.failed || job.prompt_length == 0) continue;
    const auto floats = job.prompt_length * block.width();
    const auto slopes = std::span(job.prompts).subspan(at * floats, floats);
    std::fill(slopes.begin(), slopes.end(), 0.F);
    for (std::size_t s = 0; s < job.samples; ++s)
      for (std::size_t i = 0; i < floats; ++i)
        slopes[i] += job.values[s * job.time * block.width() + i];
  }
}

} // namespace

void compute(inference_batch& what) {
  layer_span range{std::numeric_limits<std::uint32_t>::max(), 0};
  std::vector<const served_layers*> models; // in the order of the jobs
  for (auto& job : what.jobs) {
    for (const auto& cache : job.caches)
      if (!cache->rollback(job.from) || (!job.order.empty() && !cache->reorder(job.order)))
        job.failed = true;
    if (job.is_pass) continue;
    range = {std::min(range.first, job.layers.first), std::max(range.last, job.layers.last)};
    if (std::find(models.begin(), models.end(), job.model.get()) == models.end())
      models.push_back(job.model.get());
  }
  for (const auto* model : models)
    compute_steps(
        what, *model,
        {std::max(range.first, model->layers.first), std::min(range.last, model->layers.last)});
  for (auto& job : what.jobs)
    if (job.is_pass) compute_pass(job);
}

duration time_of(const inference_batch& what, const server_speed& speed) {
  std::uint64_t work = 0, pairs = 0, most = 0;
  std::set<std::uint32_t> layers;
  for (const auto& job : what.jobs) {
    const std::uint64_t passes = job.gradient.empty() ? 1 : 3;
    most = std::max(most, passes);
    const auto tokens = passes * job.samples * job.time * job.layers.count();
    work += tokens;
    pairs += tokens * (job.from + job.time / 2);
    for (auto layer = job.layers.first; layer < job.layers.last; ++layer) layers.insert(layer);
  }
  const auto of = [](duration one, std::uint64_t count) {
    return one * static_cast<std::int64_t>(count);
  };
  return speed.batch + of(speed.layer_batch, layers.size() * most) + of(speed.layer, work) +
         of(speed.context, pairs);
}

} // namespace shoal::actors
