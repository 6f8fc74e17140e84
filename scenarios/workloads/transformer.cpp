#include "scenarios/workloads/transformer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#if SHOAL_WITH_LEARN
#include "kernels/learn/baseline.hpp"
#include "kernels/learn/bigram.hpp"
#include "kernels/learn/generate.hpp"
#include "kernels/learn/maxout_transformer.hpp"
#include "kernels/learn/text.hpp"
#include "kernels/learn/torch_loader.hpp"
#include "scenarios/workloads/text_source.hpp"
#endif
#include "actors/training/optimizer_step.hpp"
#include "kernels/learn/transformer_description.hpp"
#include "kernels/transformer_flops.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/pipeline/byte_stages.hpp"
#include "scenarios/schema/check_scenario.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/workloads/check_texts.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "scenarios/workloads/workload.hpp"

namespace shoal::scenarios {

// A workload may name its parts as other workloads name theirs.
namespace transformer_workload_parts {
namespace {

#if SHOAL_WITH_LEARN
class transformer_work final : public actors::workload {
public:
  transformer_work(std::unique_ptr<const learn::language_model> model,
                   const kernels::optimizer_config& optimizer, std::uint64_t seed)
      : model_(std::move(model)), optimizer_(optimizer), seed_(seed) {}

  const learn::language_model& model() const noexcept { return *model_; }
  const kernels::optimizer_config& optimizer() const noexcept { return optimizer_; }

  std::uint64_t value_count() const override { return model_->parameter_count(); }
  std::vector<kernels::tensor_slot> layout() const override {
    const auto& slots = model_->layout();
    return {slots.begin(), slots.end()};
  }
  std::uint64_t sample_bytes() const override { return model_->sample_bytes(); }

  actors::model_state initial() const override {
    return actors::fresh_state(optimizer_, model_->initial_parameters(seed_));
  }

  double accumulate(const actors::model_state& at, std::span<const std::byte> samples,
                    std::uint64_t count, std::span<double> gradient_sum) const override {
    thread_local std::vector<float> gradient;
    gradient.assign(value_count(), 0.0f);
    auto loss = model_->accumulate_gradient(at.parameters.floats(), samples, count, gradient);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient_sum[i] += gradient[i];
    return loss;
  }

  payload repaired(payload averaged) const override {
    return kernels::repaired_state(optimizer_, value_count(), std::move(averaged));
  }

  actors::model_state step(const actors::model_state& at,
                           const payload& mean_gradient) const override {
    return actors::step_from(at, optimizer_, mean_gradient, model_->layout());
  }

private:
  std::unique_ptr<const learn::language_model> model_;
  kernels::optimizer_config optimizer_;
  std::uint64_t seed_;
};

class prepared_transformer final : public prepared_workload {
public:
  prepared_transformer(const scenario& from, std::unique_ptr<const learn::language_model> model,
                       const kernels::optimizer_config& optimizer,
                       std::optional<learn::text_corpus> corpus)
      : scenario_(from),
        corpus_(corpus ? std::make_shared<const learn::text_corpus>(std::move(*corpus)) : nullptr),
        work_(std::make_shared<const transformer_work>(std::move(model), optimizer, from.seed)),
        source_(corpus_ ? std::make_shared<const text_source>(corpus_) : nullptr) {
    if (corpus_) held_out_ = corpus_->held_out_samples();
  }

  std::shared_ptr<const actors::workload> work() const override { return work_; }
  std::shared_ptr<const actors::sample_source> source() const override { return source_; }
  std::string data_digest() const override {
    return corpus_ ? corpus_->content_digest().hex() : std::string{};
  }

  double held_out_loss(const actors::model_state& state) const override {
    if (!corpus_) return std::numeric_limits<double>::quiet_NaN();
    learn::use_one_thread();
    return work_->model().mean_loss(state.parameters.floats(), held_out_,
                                    corpus_->held_out_windows());
  }

  bool has_references() const override { return corpus_ != nullptr; }
  reference_losses references(const reference_options& how) const override {
    learn::baseline_options options;
    options.target_batch = traits_of(scenario_).baseline_batch;
    options.micro_batch = scenario_.training.micro_batch;
    options.steps = static_cast<std::int64_t>(how.steps);
    options.threads = how.threads;
    bool ended = false;
    if (how.on_step)
      options.on_step = [&](std::int64_t step, double) {
        ended = !how.on_step(static_cast<std::uint64_t>(step));
        return !ended;
      };
    auto initial = work_->initial();
    auto result = learn::train_baseline(
        work_->model(), work_->optimizer(), initial.parameters.floats(),
        [this](std::uint64_t index, std::span<std::byte> out) { corpus_->sample(index, out); },
        held_out_, options);
    return {ended ? std::numeric_limits<double>::quiet_NaN() : result.final_loss,
            learn::bigram_loss(corpus_->train_segments(), corpus_->held_out_segments())};
  }

  result<void> save(const actors::model_state& state, std::uint64_t data_from,
                    const std::string& path) const override {
    return save_checkpoint(scenario_, work_->optimizer(), data_digest(), state, data_from, path);
  }

  std::string sample_prompt() const override { return "The license "; }

  std::string sample_text(const actors::model_state& state, std::uint64_t seed) const override {
    learn::use_one_thread();
    auto random = stream(seed, "generate");
    return learn::printable(learn::generate(
        work_->model(), state.parameters.floats(), learn::byte_codec(), sample_prompt(), 160,
        {.temperature = 0.7, .top_k = 40, .top_p = 0.95}, random));
  }

private:
  scenario scenario_;
  std::shared_ptr<const learn::text_corpus> corpus_;
  std::shared_ptr<const transformer_work> work_;
  std::shared_ptr<const actors::sample_source> source_;
  std::vector<std::byte> held_out_;
};

result<std::unique_ptr<prepared_workload>> prepare(const scenario& from, bool needs_data) {
  const auto& model = from.workload.as<transformer_options>();
  learn::text_options options;
  options.context = static_cast<std::int64_t>(model.context);
  options.holdout = from.data.holdout;
  options.seed = from.seed;
  options.field = from.data.field;
  options.shuffle_buffer = from.data.shuffle_buffer;
  auto corpus = learn::text_corpus::load(from.data.files, options);
  if (!corpus && needs_data) return failure{corpus.error()};
  const auto optimizer = optimizer_of(from.training.optimizer);
  if (!optimizer) return failure{optimizer.error()};
  auto made = learn::make_transformer(model_of(model), maxout_of(model), model.checkpoint);
  if (!made) return failure{"workload: " + made.error()};
  return std::unique_ptr<prepared_workload>{std::make_unique<prepared_transformer>(
      from, std::move(*made), *optimizer,
      corpus ? std::optional(std::move(*corpus)) : std::nullopt)};
}

#else
result<std::unique_ptr<prepared_workload>> prepare(const scenario&, bool) {
  return failure{"workload.kind 'transformer' needs libtorch, which this build was made without"};
}
#endif

void check_heads(const scenario& what, checking& report) {
  const auto& w = what.workload.as<transformer_options>();
  if (!report.sound({"workload.dim", "workload.heads"})) return;
  const std::string culprit = report.given("workload.heads") ? "workload.heads" : "workload.dim";
  if (w.dim % w.heads != 0)
    report.error(culprit, fmt::format("dim {} cannot be divided among {} heads", w.dim, w.heads));
  else if (w.dim / w.heads % 2 != 0)
    report.error(culprit,
                 fmt::format("dim {} / heads {} is {}: rotary positions need an even number", w.dim,
                             w.heads, w.dim / w.heads));
}

void check_bottlenecks(const scenario& what, checking& report) {
  const auto& w = what.workload.as<transformer_options>();
  if (!report.sound({"workload.dim", "workload.layers", "workload.maxout", "workload.bottlenecks"}))
    return;
  const auto maxout = maxout_of(w);
  const auto valid = learn::validate(maxout, static_cast<std::int64_t>(w.dim),
                                     static_cast<std::int64_t>(w.layers));
  if (valid) return;
  const bool of_group = maxout.pieces > 0 && maxout.pieces <= static_cast<std::int64_t>(w.layers);
  report.error(report.given("workload.maxout") && (of_group || maxout.pieces == 0)
                   ? "workload.maxout"
                   : "workload.bottlenecks",
               valid.error());
}

} // namespace
} // namespace transformer_workload_parts

template <class V>
void describe(V& v, transformer_options& o) {
  using namespace transformer_workload_parts;
  v.field("layers", o.layers, "blocks of attention and feed-forward",
          {.at_least = 1, .at_most = 1024});
  v.field("heads", o.heads, "of attention; divides `dim`", {.at_least = 1, .at_most = 1024});
  v.field("dim", o.dim, "width; `dim / heads` is even", {.at_least = 2, .at_most = 65536});
  v.field("context", o.context, "bytes of text in a sample", {.at_least = 1, .at_most = 65536});
  v.field("checkpoint", o.checkpoint,
          "activations are computed again, layer by layer, in the backward pass: less memory, "
          "about a third more "
          "work, the same results",
          {.hide_default = true});
  v.field("bottlenecks", o.bottlenecks,
          "pieces of the layers that end in a bottleneck, the last one before the head; 0: none. "
          "Where a pipeline cuts the model at one, activations are narrow. So take the number of "
          "`training.stages`",
          {.at_most = 1024, .hide_default = true});
  v.field("maxout", o.maxout,
          "channels of which a bottleneck lets the largest pass; a learnt matrix then makes the "
          "width again. Divides `dim`. Activations and their gradients have that part of the bytes",
          {.at_least = 1, .at_most = 65536, .hide_default = true});
}

kernels::transformer_config model_of(const transformer_options& from) {
  using namespace transformer_workload_parts;
  kernels::transformer_config out;
  out.layers = static_cast<std::int64_t>(from.layers);
  out.heads = static_cast<std::int64_t>(from.heads);
  out.dim = static_cast<std::int64_t>(from.dim);
  out.context = static_cast<std::int64_t>(from.context);
  return out;
}

learn::maxout_config maxout_of(const transformer_options& from) {
  using namespace transformer_workload_parts;
  return {static_cast<std::int64_t>(from.bottlenecks), static_cast<std::int64_t>(from.maxout)};
}

workload_definition transformer_workload() {
  using namespace transformer_workload_parts;
  workload_definition out;
  out.name = "transformer";
  out.meaning = "a language model, bytes in and bytes out";
  out.options = options_box::of(transformer_options{});
  out.learns_text = true;
  out.check = [](const scenario& what, checking& report) {
    check_heads(what, report);
    check_bottlenecks(what, report);
    check_texts(what, "a transformer", report);
  };
  out.possible = [](const workload_choice& of) {
    const auto& o = of.as<transformer_options>();
    const auto model = model_of(o);
    auto valid = kernels::validate(model);
    return valid ? learn::validate(maxout_of(o), model.dim, model.layers) : valid;
  };
  out.tensors = [](const workload_choice& of) {
    const auto& o = of.as<transformer_options>();
    return learn::layout_of(model_of(o), maxout_of(o));
  };
  out.sample_flops = [](const workload_choice& of) {
    const auto& o = of.as<transformer_options>();
    const auto tokens = static_cast<double>(o.context), width = static_cast<double>(o.dim);
    const double words = static_cast<double>(model_of(o).vocabulary); // rows of the output matrix
    return kernels::forward_and_backward *
           (static_cast<double>(o.layers) * kernels::layer_forward_flops(tokens, width, 4 * width) +
            2 * tokens * width * words +
            static_cast<double>(o.bottlenecks) * 2 * tokens * width * width /
                static_cast<double>(o.maxout));
  };
  out.describe_model = [](const workload_choice& of) {
    const auto& o = of.as<transformer_options>();
    return learn::description_of(model_of(o), maxout_of(o));
  };
  out.fingerprint = [](const workload_choice& of) {
    const auto& w = of.as<transformer_options>();
    return fmt::format("transformer: layers {}, heads {}, dim {}, context {}{}{}", w.layers,
                       w.heads, w.dim, w.context, w.checkpoint ? ", checkpoint" : "",
                       w.bottlenecks > 0
                           ? fmt::format(", bottlenecks {}, maxout {}", w.bottlenecks, w.maxout)
                           : "");
  };
  out.cut = [](const workload_choice& of, std::uint32_t stages) {
    const auto& o = of.as<transformer_options>();
    return cut_byte_transformer(model_of(o), stages, maxout_of(o));
  };
  out.shape_between_stages = [](const workload_choice& of) {
    const auto& o = of.as<transformer_options>();
    return sample_shape{static_cast<std::uint32_t>(o.context), o.dim / o.maxout};
  };
  out.prepare = prepare;
  out.starter = {"a small language model over bytes; `timing` keeps sizes and durations, and skips "
                 "the learning",
                 "  layers: 2\n  heads: 4\n  dim: 64\n  context: 64\n",
                 "{kind: adamw, learning_rate: 0.003, beta2: 0.95, weight_decay: 0.01, clip_norm: "
                 "1, warmup_steps: 5}"};
  return out;
}

} // namespace shoal::scenarios
