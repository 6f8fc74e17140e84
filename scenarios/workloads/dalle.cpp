// Workload 'dalle': drawing pictures for captions, by kernels/learn/dalle.hpp. The data are one
// file of `shoal images prepare`, which also says which pictures are held out.
#include "scenarios/workloads/dalle.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <utility>

#if SHOAL_WITH_LEARN
#include "kernels/learn/dalle.hpp"
#include "kernels/learn/drawing.hpp"
#include "kernels/learn/picture_samples.hpp"
#include "kernels/learn/pictures/png_file.hpp"
#include "kernels/learn/torch_loader.hpp"
#endif
#include "actors/training/optimizer_step.hpp"
#include "kernels/learn/albert_layout.hpp"
#include "kernels/learn/dalle_description.hpp"
#include "kernels/learn/pictures/picture_set.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/observe/epoch_file.hpp"
#include "scenarios/schema/check_scenario.hpp"
#include "scenarios/schema/describe.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "scenarios/workloads/training_steps.hpp"
#include "scenarios/workloads/workload.hpp"

namespace shoal::scenarios {

// A workload may name its parts as other workloads name theirs.
namespace dalle_workload_parts {
namespace {

constexpr const char* how_to_prepare =
    "give one file of shoal images prepare, as in --set data.files=[emoji.pictures]";

#if SHOAL_WITH_LEARN
class dalle_work final : public actors::workload {
public:
  dalle_work(const dalle_options& options, const kernels::optimizer_config& optimizer,
             std::uint64_t seed)
      : model_(model_of(options), options.reversible), optimizer_(optimizer), seed_(seed) {}

  const learn::dalle& model() const noexcept { return model_; }
  const kernels::optimizer_config& optimizer() const noexcept { return optimizer_; }

  std::uint64_t value_count() const override { return model_.parameter_count(); }
  std::vector<kernels::tensor_slot> layout() const override { return model_.layout(); }
  std::uint64_t sample_bytes() const override { return model_.sample_bytes(); }

  actors::model_state initial() const override {
    return actors::fresh_state(optimizer_, model_.initial_parameters(seed_));
  }

  double accumulate(const actors::model_state& at, std::span<const std::byte> samples,
                    std::uint64_t count, std::span<double> gradient_sum) const override {
    thread_local std::vector<float> gradient;
    gradient.assign(value_count(), 0.0f);
    const auto loss = model_.accumulate_gradient(at.parameters.floats(), samples, count, gradient);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient_sum[i] += gradient[i];
    return loss;
  }

  payload repaired(payload averaged) const override {
    return kernels::repaired_state(optimizer_, value_count(), std::move(averaged));
  }

  actors::model_state step(const actors::model_state& at,
                           const payload& mean_gradient) const override {
    return actors::step_from(at, optimizer_, mean_gradient, layout(), learn::albert_decays);
  }

private:
  learn::dalle model_;
  kernels::optimizer_config optimizer_;
  std::uint64_t seed_;
};

class picture_source final : public actors::sample_source {
public:
  explicit picture_source(std::shared_ptr<const learn::picture_samples> samples)
      : samples_(std::move(samples)) {}
  std::uint32_t sample_bytes() const override {
    return static_cast<std::uint32_t>(samples_->format().bytes());
  }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    samples_->write(index, out);
  }

private:
  std::shared_ptr<const learn::picture_samples> samples_;
};

class prepared_dalle final : public prepared_workload {
public:
  prepared_dalle(const scenario& from, const dalle_options& options,
                 const kernels::optimizer_config& optimizer,
                 std::shared_ptr<const learn::picture_samples> samples)
      : scenario_(from), samples_(std::move(samples)),
        work_(std::make_shared<const dalle_work>(options, optimizer, from.seed)),
        source_(samples_ ? std::make_shared<const picture_source>(samples_) : nullptr) {
    if (samples_) held_out_ = samples_->held_out(options.held_out_samples);
  }

  std::shared_ptr<const actors::workload> work() const override { return work_; }
  std::shared_ptr<const actors::sample_source> source() const override { return source_; }
  std::string data_digest() const override {
    return samples_ ? samples_->set().content.hex() : std::string{};
  }

  /// Nats for each code of a held-out picture.
  double held_out_loss(const actors::model_state& state) const override {
    if (!samples_) return std::numeric_limits<double>::quiet_NaN();
    learn::use_one_thread();
    double sum = 0;
    const auto losses = work_->model().losses(state.parameters.floats(), held_out_);
    for (const auto& loss : losses) sum += loss.image / static_cast<double>(losses.size());
    return sum;
  }

  bool has_references() const override { return samples_ != nullptr; }
  reference_losses references(const reference_options& how) const override {
    reference_losses out;
    out.baseline =
        loss_alone(*this, scenario_.training.micro_batch, traits_of(scenario_).baseline_batch, how);
    return out;
  }

  result<void> save(const actors::model_state& state, std::uint64_t data_from,
                    const std::string& path) const override {
    auto saved =
        save_checkpoint(scenario_, work_->optimizer(), data_digest(), state, data_from, path);
    const std::filesystem::path file(path);
    if (!saved || !epoch_of(file.filename().string(), ".ckpt")) return saved;
    return draw(state, std::filesystem::path(file).replace_extension(".png"));
  }
  std::string sample_text(const actors::model_state&, std::uint64_t) const override { return {}; }

private:
  /// A picture for each caption of `workload.show`, one below the other.
  result<void> draw(const actors::model_state& state, const std::filesystem::path& path) const {
    const auto& captions = scenario_.workload.as<dalle_options>().show;
    if (captions.empty() || !samples_) return {};
    learn::use_one_thread();
    std::vector<learn::picture> drawn;
    for (const auto& caption : captions)
      drawn.push_back(samples_->set().coder->decode(
          learn::drawn_codes(work_->model(), state.parameters.floats(), *samples_, caption, 1,
                             learn::published_sampling, scenario_.seed)
              .front()));
    return learn::write_png(learn::contact_sheet(drawn, 1, 1), path);
  }

  scenario scenario_;
  std::shared_ptr<const learn::picture_samples> samples_;
  std::shared_ptr<const dalle_work> work_;
  std::shared_ptr<const actors::sample_source> source_;
  std::vector<std::byte> held_out_;
};

result<std::shared_ptr<const learn::picture_samples>> samples_of(const scenario& from) {
  if (from.data.files.size() != 1) return failure{fmt::format("data.files: {}", how_to_prepare)};
  auto set = learn::load_picture_set(from.data.files.front());
  if (!set) return failure{fmt::format("{}; {}", set.error(), how_to_prepare)};
  auto samples = learn::picture_samples::make(
      std::move(*set), model_of(from.workload.as<dalle_options>()), from.data.shuffle_buffer);
  if (!samples) return failure{samples.error()};
  return std::make_shared<const learn::picture_samples>(std::move(*samples));
}

result<std::unique_ptr<prepared_workload>> prepare(const scenario& from, bool needs_data) {
  const auto& options = from.workload.as<dalle_options>();
  if (auto valid = learn::validate(model_of(options)); !valid)
    return failure{"workload: " + valid.error()};
  const auto samples = samples_of(from);
  if (!samples && needs_data) return failure{samples.error()};
  const auto optimizer = optimizer_of(from.training.optimizer);
  if (!optimizer) return failure{optimizer.error()};
  if (auto loaded = learn::load_torch(); !loaded) return failure{loaded.error()};
  return std::unique_ptr<prepared_workload>{
      std::make_unique<prepared_dalle>(from, options, *optimizer, samples ? *samples : nullptr)};
}

#else
result<std::unique_ptr<prepared_workload>> prepare(const scenario&, bool) {
  return failure{"workload.kind 'dalle' needs libtorch, which this build was made without"};
}
#endif

void check_dalle(const scenario& what, checking& report) {
  const auto& o = what.workload.as<dalle_options>();
  if (report.sound({"workload.dim", "workload.heads"}) &&
      (o.dim % (2 * o.heads) != 0 || o.dim % 4 != 0))
    report.error(
        report.given("workload.heads") ? "workload.heads" : "workload.dim",
        fmt::format("dim {} is no multiple of 4 and of {}, twice the heads", o.dim, 2 * o.heads));
  check_decay(what, "dalle", report);
  // Only the host of the data shard has the file, so prepare() reads it.
  if (report.given("data.files") && report.sound({"data.files"}) && what.data.files.size() != 1)
    report.error("data.files", fmt::format("data.files: {}", how_to_prepare));
}

} // namespace
} // namespace dalle_workload_parts

template <class V>
void describe(V& v, dalle_options& o) {
  using namespace dalle_workload_parts;
  v.field("layers", o.layers, "blocks of attention and feed-forward",
          {.at_least = 1, .at_most = 1024});
  v.field("heads", o.heads, "of attention", {.at_least = 1, .at_most = 1024});
  v.field("dim", o.dim, "width of the layers; a multiple of 4 and of twice the heads",
          {.at_least = 4, .at_most = 65536});
  v.field("groups", o.groups,
          "layers whose numbers differ by a multiple of this share their weights; the last layer "
          "has its own, and with 0 each has",
          {.at_most = 1024});
  v.field("text_length", o.text_length, "most tokens of a caption",
          {.at_least = 1, .at_most = 8192});
  v.field("vocabulary", o.vocabulary, "tokens of captions, as the prepared file has them",
          {.at_least = 2, .at_most = 1 << 24});
  v.field("codes", o.codes, "different codes of pictures, as the prepared file has them",
          {.at_least = 2, .at_most = 65536});
  v.field("side", o.side, "codes on a side of a picture, as the prepared file has them",
          {.at_least = 2, .at_most = 256});
  v.field("reversible", o.reversible,
          "the backward pass computes activations again from the output of the last layer, so that "
          "its memory does not grow with the layers",
          {.hide_default = true});
  v.field("held_out_samples", o.held_out_samples, "held-out pictures that measure the loss",
          {.at_least = 1, .at_most = 65536, .hide_default = true});
  v.field(
      "show", o.show,
      "captions whose pictures are drawn after each checkpoint: into `checkpoints/epoch-N.png`, "
      "and onto the page of the run",
      {.hide_default = true, .otherwise = "none"});
}

learn::dalle_config model_of(const dalle_options& from) {
  using namespace dalle_workload_parts;
  learn::dalle_config out;
  out.text_vocabulary = static_cast<std::int64_t>(from.vocabulary);
  out.text_length = static_cast<std::int64_t>(from.text_length);
  out.codes = static_cast<std::int64_t>(from.codes);
  out.side = static_cast<std::int64_t>(from.side);
  out.dim = static_cast<std::int64_t>(from.dim);
  out.heads = static_cast<std::int64_t>(from.heads);
  out.layers = static_cast<std::int64_t>(from.layers);
  out.groups = static_cast<std::int64_t>(from.groups);
  return out;
}

workload_definition dalle_workload() {
  using namespace dalle_workload_parts;
  workload_definition out;
  out.name = "dalle";
  out.meaning = "a decoder that learns to draw pictures for captions";
  out.options = options_box::of(dalle_options{});
  out.check = check_dalle;
  out.possible = [](const workload_choice& of) {
    return learn::validate(model_of(of.as<dalle_options>()));
  };
  out.tensors = [](const workload_choice& of) {
    return learn::dalle_layout(model_of(of.as<dalle_options>()));
  };
  out.describe_model = [](const workload_choice& of) {
    return learn::description_of(model_of(of.as<dalle_options>()));
  };
  out.fingerprint = [](const workload_choice& of) {
    const auto& o = of.as<dalle_options>();
    return fmt::format("dalle: {}{}", learn::description_of(model_of(o)),
                       o.reversible ? ", reversible" : "");
  };
  out.prepare = prepare;
  out.starter = {
      "needs data.files: [FILE], of shoal images prepare", "  layers: 9\n  heads: 4\n  dim: 128\n",
      "{kind: lamb, learning_rate: 0.005, beta2: 0.96, epsilon: 1e-6, weight_decay: 0.045, "
      "clip_norm: 4, warmup_steps: 10}"};
  return out;
}

} // namespace shoal::scenarios
