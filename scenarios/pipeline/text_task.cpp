#include "scenarios/pipeline/text_task.hpp"

#include "actors/training/optimizer_step.hpp"
#include "kernels/learn/whole_pass.hpp"
#include "scenarios/pipeline/byte_stages.hpp"

#include <algorithm>
#include <utility>

namespace shoal::scenarios {

namespace {

constexpr std::uint64_t most_held_out = 256;
// Samples of one pass on one machine.
constexpr std::uint64_t pass_samples = 16;

} // namespace

result<text_task> text_task::load(const kernels::transformer_config& model,
                                  const std::vector<std::string>& files, double holdout,
                                  std::uint64_t seed) {
  if (auto valid = kernels::validate(model); !valid) return failure{"pipeline: " + valid.error()};
  learn::text_options options;
  options.context = model.context;
  options.holdout = holdout;
  options.seed = seed;
  auto corpus = learn::text_corpus::load(files, options);
  if (!corpus) return failure{"pipeline.files: " + corpus.error()};
  text_task out;
  out.config_ = model;
  out.model_ = std::make_shared<const learn::decoder>(learn::decoder_of(model));
  out.corpus_ = std::make_shared<const learn::text_corpus>(std::move(*corpus));
  out.first_ = kernels::initial_parameters(model, seed);
  out.held_out_ = out.corpus_->held_out_samples(most_held_out);
  out.held_out_count_ = out.held_out_.size() / out.corpus_->sample_bytes();
  return out;
}

result<std::shared_ptr<const actors::stage_model>> text_task::cut(std::uint32_t stages) const {
  return cut_byte_transformer(config_, stages);
}

payload text_task::samples(std::uint64_t first, std::uint64_t count) const {
  const auto bytes = corpus_->sample_bytes();
  std::vector<std::byte> out(count * bytes);
  for (std::uint64_t i = 0; i < count; ++i)
    corpus_->sample(first + i, std::span(out).subspan(i * bytes, bytes));
  return payload(std::move(out));
}

result<double> text_task::pass(std::span<const float> parameters,
                               std::span<const std::byte> samples, std::uint64_t count,
                               std::span<float> gradient) const {
  const auto& model = *model_;
  const auto batch = read_byte_samples(samples, count, static_cast<std::size_t>(model.context()));
  if (!batch) return failure{batch.error()};
  return learn::whole_pass(model, model.layout(), parameters, batch->shape, batch->inputs,
                           batch->targets, gradient);
}

result<double> text_task::held_out_loss(std::span<const float> parameters) const {
  const auto bytes = corpus_->sample_bytes();
  double sum = 0;
  for (std::uint64_t at = 0; at < held_out_count_; at += pass_samples) {
    const auto count = std::min(pass_samples, held_out_count_ - at);
    const auto part =
        pass(parameters, std::span(held_out_).subspan(at * bytes, count * bytes), count, {});
    if (!part) return failure{part.error()};
    sum += *part;
  }
  return sum / static_cast<double>(held_out_count_);
}

result<std::vector<float>>
text_task::train_alone(const kernels::optimizer_config& optimizer, std::uint64_t batch,
                       std::uint64_t steps,
                       const std::function<bool(std::uint64_t)>& proceed) const {
  auto state = actors::fresh_state(optimizer, first_);
  for (std::uint64_t step = 0; step < steps; ++step) {
    std::vector<float> sum(first_.size());
    for (std::uint64_t at = 0; at < batch; at += pass_samples) {
      const auto count = std::min(pass_samples, batch - at);
      const auto bytes = samples(step * batch + at, count);
      if (auto loss = pass(state.parameters.floats(), bytes.bytes(), count, sum); !loss)
        return failure{loss.error()};
    }
    for (auto& value : sum) value /= static_cast<float>(batch);
    state = actors::step_from(state, optimizer, payload(std::move(sum)), model_->layout());
    if (!proceed(step + 1)) break;
  }
  const auto out = state.parameters.floats();
  return std::vector<float>(out.begin(), out.end());
}

result<std::vector<float>> whole_of(const actors::stage_model& cut, const learn::decoder& model,
                                    const std::vector<actors::state_ptr>& states) {
  std::vector<float> out(kernels::end_of(model.layout()));
  for (std::uint32_t s = 0; s < cut.stages(); ++s)
    if (auto done = learn::scatter_add(cut.tensors_of(s), states[s]->parameters.floats(),
                                       model.layout(), out);
        !done)
      return failure{done.error()};
  return out;
}

} // namespace shoal::scenarios
