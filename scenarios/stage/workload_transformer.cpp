#include "scenarios/stage/workload_transformer.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "kernels/learn/baseline.hpp"
#include "kernels/learn/bigram.hpp"
#include "kernels/learn/generate.hpp"
#include "kernels/learn/text.hpp"
#include "kernels/learn/transformer.hpp"
#include "scenarios/schema/start_from.hpp"
#include "scenarios/stage/optimizer_step.hpp"

namespace shoal::scenarios {

namespace {

std::span<const std::uint8_t> tokens_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

class transformer_work final : public actors::workload {
 public:
  transformer_work(const kernels::transformer_config& model, bool checkpoint, const kernels::optimizer_config& optimizer,
                   std::uint64_t seed)
      : model_(model, checkpoint), optimizer_(optimizer), seed_(seed) {}

  const learn::transformer& model() const noexcept { return model_; }
  const kernels::optimizer_config& optimizer() const noexcept { return optimizer_; }

  std::uint64_t value_count() const override { return model_.parameter_count(); }
  std::vector<kernels::tensor_slot> layout() const override {
    const auto& slots = model_.layout();
    return {slots.begin(), slots.end()};
  }
  std::uint64_t sample_bytes() const override { return model_.sample_bytes(); }

  actors::model_state initial() const override { return fresh_state(optimizer_, model_.initial_parameters(seed_)); }

  double accumulate(const actors::model_state& at, std::span<const std::byte> samples, std::uint64_t count,
                    std::span<double> gradient_sum) const override {
    thread_local std::vector<float> gradient;
    gradient.assign(value_count(), 0.0f);
    auto loss = model_.accumulate_gradient(at.parameters.floats(), tokens_of(samples), count, gradient);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient_sum[i] += gradient[i];
    return loss;
  }

  payload mended(payload averaged) const override { return mended_state(optimizer_, std::move(averaged), value_count()); }

  actors::model_state step(const actors::model_state& at, const payload& mean_gradient) const override {
    return step_from(at, optimizer_, mean_gradient, model_.layout());
  }

 private:
  learn::transformer model_;
  kernels::optimizer_config optimizer_;
  std::uint64_t seed_;
};

class text_source final : public actors::sample_source {
 public:
  explicit text_source(std::shared_ptr<const learn::text_corpus> corpus) : corpus_(std::move(corpus)) {}
  std::uint32_t sample_bytes() const override { return static_cast<std::uint32_t>(corpus_->sample_bytes()); }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    corpus_->sample(index, {reinterpret_cast<std::uint8_t*>(out.data()), out.size()});
  }

 private:
  std::shared_ptr<const learn::text_corpus> corpus_;
};

class transformer_workload final : public prepared_workload {
 public:
  transformer_workload(const scenario& from, const kernels::optimizer_config& optimizer, std::optional<learn::text_corpus> corpus)
      : scenario_(from),
        corpus_(corpus ? std::make_shared<const learn::text_corpus>(std::move(*corpus)) : nullptr),
        work_(std::make_shared<const transformer_work>(model_of(from.workload), from.workload.checkpoint, optimizer, from.seed)),
        source_(corpus_ ? std::make_shared<const text_source>(corpus_) : nullptr) {
    if (corpus_) held_out_ = corpus_->held_out_samples();
  }

  std::shared_ptr<const actors::workload> work() const override { return work_; }
  std::shared_ptr<const actors::sample_source> source() const override { return source_; }
  std::string data_digest() const override { return corpus_ ? corpus_->content_digest().hex() : std::string{}; }

  double held_out_loss(const actors::model_state& state) const override {
    if (!corpus_) return std::numeric_limits<double>::quiet_NaN();
    learn::use_one_thread();
    return work_->model().mean_loss(state.parameters.floats(), held_out_, corpus_->held_out_windows());
  }

  bool has_references() const override { return corpus_ != nullptr; }
  reference_losses references(std::uint64_t steps, unsigned threads) const override {
    learn::baseline_options options;
    options.target_batch = scenario_.training.target_batch;
    options.micro_batch = scenario_.training.micro_batch;
    options.steps = static_cast<std::int64_t>(steps);
    options.threads = threads;
    auto initial = work_->initial();
    auto result = learn::train_baseline(
        work_->model(), work_->optimizer(), initial.parameters.floats(),
        [this](std::uint64_t index, std::span<std::uint8_t> out) { corpus_->sample(index, out); }, held_out_, options);
    return {result.final_loss, learn::bigram_loss(corpus_->train_segments(), corpus_->held_out_segments())};
  }

  result<void> save(const actors::model_state& state, std::uint64_t data_from, const std::string& path) const override {
    return save_checkpoint(scenario_, work_->optimizer(), data_digest(), state, data_from, path);
  }

  std::string sample_prompt() const override { return "The license "; }

  std::string sample_text(const actors::model_state& state, std::uint64_t seed) const override {
    learn::use_one_thread();
    auto random = stream(seed, "generate");
    return learn::printable(learn::generate(work_->model(), state.parameters.floats(), sample_prompt(), 160,
                                            {.temperature = 0.7, .top_k = 40, .top_p = 0.95}, random));
  }

 private:
  scenario scenario_;
  std::shared_ptr<const learn::text_corpus> corpus_;
  std::shared_ptr<const transformer_work> work_;
  std::shared_ptr<const actors::sample_source> source_;
  std::vector<std::uint8_t> held_out_;
};

}  // namespace

result<std::unique_ptr<prepared_workload>> prepare_transformer(const scenario& from, bool needs_data) {
  learn::text_options options;
  options.context = static_cast<std::int64_t>(from.workload.context);
  options.holdout = from.data.holdout;
  options.seed = from.seed;
  options.field = from.data.field;
  options.shuffle_buffer = from.data.shuffle_buffer;
  auto corpus = learn::text_corpus::load(from.data.files, options);
  if (!corpus && needs_data) return failure{corpus.error()};
  if (auto valid = kernels::validate(model_of(from.workload)); !valid) return failure{"workload: " + valid.error()};
  const auto optimizer = optimizer_of(from.training.optimizer);
  if (!optimizer) return failure{optimizer.error()};
  if (auto loaded = learn::load_torch(); !loaded) return failure{loaded.error()};
  return std::unique_ptr<prepared_workload>{
      std::make_unique<transformer_workload>(from, *optimizer, corpus ? std::optional(std::move(*corpus)) : std::nullopt)};
}

}  // namespace shoal::scenarios
