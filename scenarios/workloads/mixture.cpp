// Workload 'mixture': a language model over bytes with layers of experts. Attention is in the trunk
// (kernels/learn/text_trunk.hpp). A gate chooses the experts of each token or of a whole sample, as
// the kind of their block says (scenarios/experts/expert_block_kind.hpp).
#include "actors/training/optimizer_step.hpp"
#include "kernels/expert_gate.hpp"
#include "kernels/learn/mixture_model.hpp"
#include "kernels/mixing.hpp"
#include "kernels/transformer_flops.hpp"
#include "scenarios/experts/expert_block_kind.hpp"
#include "scenarios/experts/gate_option.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/workloads/check_texts.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "scenarios/workloads/training_steps.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#if SHOAL_WITH_LEARN
#include "kernels/base/json_text.hpp"
#include "kernels/learn/bigram.hpp"
#include "kernels/learn/text_trunk.hpp"
#include "kernels/learn/transformer.hpp"
#include "scenarios/workloads/text_source.hpp"
#endif

namespace shoal::scenarios {

// A workload may name its parts as other workloads name theirs.
namespace mixture_workload_parts {
namespace {

constexpr std::uint64_t most_experts = 1 << 16;

struct mixture_options {
  std::uint64_t layers = 1, heads = 4, dim = 32, context = 32;
  std::string experts = expert_blocks().all().front().name;
  std::uint64_t expert_layers = 1;
  kernels::grid grid{4, 2};
  std::uint64_t chosen = 2;
  double balance = 0.01;
  std::string gate = "softmax";
  bool operator==(const mixture_options&) const = default;
};

/// Checks go on when the reader has refused the name of a block.
const expert_block_kind& block_of(const mixture_options& o) {
  const auto* found = expert_blocks().find(o.experts);
  return found != nullptr ? *found : expert_blocks().all().front();
}

/// The rows of a sample that the gate routes, and the values in one.
std::uint64_t rows_of(const mixture_options& o) {
  return block_of(o).row == learn::text_row::token ? o.context : 1;
}
std::uint64_t row_width(const mixture_options& o) {
  return o.dim * o.context / rows_of(o);
}

kernels::transformer_config config_of(const mixture_options& o, std::uint64_t layers) {
  kernels::transformer_config out;
  out.layers = static_cast<std::int64_t>(layers);
  out.heads = static_cast<std::int64_t>(o.heads);
  out.dim = static_cast<std::int64_t>(o.dim);
  out.context = static_cast<std::int64_t>(o.context);
  return out;
}

/// A transformer has a layer, used or not.
kernels::transformer_config trunk_of(const mixture_options& o) {
  return config_of(o, std::max<std::uint64_t>(o.layers, 1));
}

std::vector<std::uint32_t> sides_of(const mixture_options& o) {
  return std::vector<std::uint32_t>(o.grid.dimensions, o.grid.side);
}

std::size_t parameters_of_layer(const mixture_options& o) {
  return kernels::parameter_count(config_of(o, 2)) - kernels::parameter_count(config_of(o, 1));
}

struct mixture_sizes {
  std::size_t trunk = 0, expert = 0, experts = 0;
};

mixture_sizes sizes_of(const mixture_options& o) {
  mixture_sizes out;
  const auto layer = parameters_of_layer(o);
  out.trunk = kernels::parameter_count(config_of(o, 1)) + o.layers * layer - layer +
              o.expert_layers * kernels::expert_gate(row_width(o), sides_of(o)).parameters();
  out.expert = block_of(o).parameters(trunk_of(o));
  out.experts = o.expert_layers * o.grid.cells();
  return out;
}

std::vector<kernels::tensor_slot> tensors_of(const mixture_options& o) {
  const auto sizes = sizes_of(o);
  std::vector<kernels::tensor_slot> out{{"trunk", 0, {static_cast<std::int64_t>(sizes.trunk)}}};
  for (std::size_t n = 0; n < sizes.experts; ++n)
    out.push_back({fmt::format("expert.{}", n),
                   sizes.trunk + n * sizes.expert,
                   {static_cast<std::int64_t>(sizes.expert)}});
  return out;
}

/// Operations of a sample, forward.
struct mixture_flops {
  double trunk = 0, experts = 0;
};

mixture_flops flops_of(const mixture_options& o) {
  const auto tokens = static_cast<double>(o.context), width = static_cast<double>(o.dim);
  const double words = static_cast<double>(config_of(o, 1).vocabulary);
  const double layer = kernels::layer_forward_flops(tokens, width, 4 * width);
  mixture_flops out;
  out.trunk = static_cast<double>(o.layers) * layer + 2 * tokens * width * words;
  out.experts = static_cast<double>(o.expert_layers * o.chosen * rows_of(o)) *
                block_of(o).row_flops(trunk_of(o));
  return out;
}

#if SHOAL_WITH_LEARN
result<mixture_parts> parts_of(const workload_choice& of) {
  const auto& o = of.as<mixture_options>();
  const auto& kind = block_of(o);
  auto ends = learn::make_text_trunk(config_of(o, o.layers), kind.row);
  if (!ends) return failure{ends.error()};
  auto block = kind.make(trunk_of(o));
  if (!block) return failure{block.error()};
  const auto width = (*block)->width(), parameters = (*block)->parameter_count();
  if (width != row_width(o) || parameters != kind.parameters(trunk_of(o)))
    return failure{fmt::format("the block '{}' has rows of {} values and {} parameters, but its "
                               "registration says {} and {}",
                               kind.name, width, parameters, row_width(o),
                               kind.parameters(trunk_of(o)))};
  auto net = std::make_shared<const learn::mixture_network>(
      std::move(*ends), learn::mixture_shape{.layers = static_cast<std::size_t>(o.expert_layers),
                                             .grid = sides_of(o),
                                             .balance = o.balance,
                                             .gate = gate_of(o.gate)});
  const auto flops = flops_of(o);
  return mixture_parts{std::make_shared<const learn::mixture_model>(
                           std::move(net), std::move(*block), static_cast<std::size_t>(o.chosen)),
                       flops.experts / (flops.experts + flops.trunk)};
}

class mixture_work final : public actors::workload {
public:
  mixture_work(std::shared_ptr<const learn::mixture_model> model,
               std::vector<kernels::tensor_slot> tensors,
               const kernels::optimizer_config& optimizer, std::uint64_t seed)
      : model_(std::move(model)), tensors_(std::move(tensors)), optimizer_(optimizer), seed_(seed) {
  }

  const learn::mixture_model& model() const noexcept { return *model_; }
  const kernels::optimizer_config& optimizer() const noexcept { return optimizer_; }

  std::uint64_t value_count() const override { return model_->parameter_count(); }
  std::vector<kernels::tensor_slot> layout() const override { return tensors_; }
  std::uint64_t sample_bytes() const override { return model_->net()->ends().sample_bytes(); }

  actors::model_state initial() const override {
    return actors::fresh_state(optimizer_, model_->initial_parameters(seed_));
  }

  double accumulate(const actors::model_state& at, std::span<const std::byte> samples,
                    std::uint64_t count, std::span<double> gradient_sum) const override {
    thread_local std::vector<float> gradient;
    gradient.assign(value_count(), 0.0f);
    const auto done = model_->add_gradient(at.parameters.floats(), samples, gradient).value();
    const auto n = static_cast<double>(count);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient_sum[i] += n * gradient[i];
    return n * done.loss;
  }

  payload repaired(payload averaged) const override {
    return kernels::repaired_state(optimizer_, value_count(), std::move(averaged));
  }

  actors::model_state step(const actors::model_state& at,
                           const payload& mean_gradient) const override {
    return actors::step_from(at, optimizer_, mean_gradient, tensors_);
  }

private:
  std::shared_ptr<const learn::mixture_model> model_;
  std::vector<kernels::tensor_slot> tensors_;
  kernels::optimizer_config optimizer_;
  std::uint64_t seed_;
};

class prepared_mixture final : public prepared_workload {
public:
  prepared_mixture(const scenario& from, std::shared_ptr<const learn::mixture_model> model,
                   const kernels::optimizer_config& optimizer,
                   std::optional<learn::text_corpus> corpus)
      : scenario_(from),
        corpus_(corpus ? std::make_shared<const learn::text_corpus>(std::move(*corpus)) : nullptr),
        work_(std::make_shared<const mixture_work>(std::move(model),
                                                   tensors_of(from.workload.as<mixture_options>()),
                                                   optimizer, from.seed)),
        source_(corpus_ ? std::make_shared<const text_source>(corpus_) : nullptr) {
    if (corpus_) held_out_ = corpus_->held_out_samples(held_out_windows);
  }

  std::shared_ptr<const actors::workload> work() const override { return work_; }
  std::shared_ptr<const actors::sample_source> source() const override { return source_; }
  std::string data_digest() const override {
    return corpus_ ? corpus_->content_digest().hex() : std::string{};
  }

  double held_out_loss(const actors::model_state& state) const override {
    if (held_out_.empty()) return std::numeric_limits<double>::quiet_NaN();
    learn::use_one_thread();
    // Some windows at once, because the rows of all would take much memory.
    constexpr std::size_t at_once = 16;
    const auto bytes = work_->sample_bytes(), count = held_out_.size() / bytes;
    double sum = 0;
    for (std::size_t first = 0; first < count; first += at_once) {
      const auto some = std::min(at_once, count - first);
      const auto judged = work_->model()
                              .judge(state.parameters.floats(),
                                     std::span(held_out_).subspan(first * bytes, some * bytes))
                              .value();
      sum += judged.loss * static_cast<double>(some);
    }
    return sum / static_cast<double>(count);
  }

  bool has_references() const override { return corpus_ != nullptr; }
  reference_losses references(const reference_options& how) const override {
    const auto batch = traits_of(scenario_).baseline_batch;
    return {loss_alone(*this, batch, batch, how),
            learn::bigram_loss(corpus_->train_segments(), corpus_->held_out_segments())};
  }

  result<void> save(const actors::model_state& state, std::uint64_t data_from,
                    const std::string& path) const override {
    return save_checkpoint(scenario_, work_->optimizer(), data_digest(), state, data_from, path);
  }

  std::string sample_text(const actors::model_state&, std::uint64_t) const override { return {}; }

private:
  static constexpr std::uint64_t held_out_windows = 256; // at most

  scenario scenario_;
  std::shared_ptr<const learn::text_corpus> corpus_;
  std::shared_ptr<const mixture_work> work_;
  std::shared_ptr<const actors::sample_source> source_;
  std::vector<std::byte> held_out_;
};

result<std::unique_ptr<prepared_workload>> prepare(const scenario& from, bool needs_data) {
  learn::text_options options;
  options.context = static_cast<std::int64_t>(from.workload.as<mixture_options>().context);
  options.holdout = from.data.holdout;
  options.seed = from.seed;
  options.field = from.data.field;
  options.shuffle_buffer = from.data.shuffle_buffer;
  auto corpus = learn::text_corpus::load(from.data.files, options);
  if (!corpus && needs_data) return failure{corpus.error()};
  const auto optimizer = optimizer_of(from.training.optimizer);
  if (!optimizer) return failure{optimizer.error()};
  if (auto loaded = learn::load_torch(); !loaded) return failure{loaded.error()};
  auto model = parts_of(from.workload);
  if (!model) return failure{"workload: " + model.error()};
  return std::unique_ptr<prepared_workload>{std::make_unique<prepared_mixture>(
      from, std::move(model->model), *optimizer,
      corpus ? std::optional(std::move(*corpus)) : std::nullopt)};
}

#else
constexpr const char* without_torch =
    "workload.kind 'mixture' needs libtorch, which this build was made without";

result<mixture_parts> parts_of(const workload_choice&) {
  return failure{without_torch};
}
result<std::unique_ptr<prepared_workload>> prepare(const scenario&, bool) {
  return failure{without_torch};
}
#endif

void check_sizes(const scenario& what, checking& report) {
  const auto& o = what.workload.as<mixture_options>();
  if (report.sound({"workload.dim", "workload.heads"}) && o.dim % (2 * o.heads) != 0)
    report.error(report.given("workload.heads") ? "workload.heads" : "workload.dim",
                 fmt::format("a dim of {} has no {} heads of an even size: take a multiple of {}",
                             o.dim, o.heads, 2 * o.heads));
  if (report.sound({"workload.gate", "workload.chosen"}))
    if (const auto wrong = misfit_of(o.gate, o.chosen))
      report.error("workload.gate", *wrong, {"chosen: 1"});
  if (!report.sound({"workload.grid", "workload.expert_layers", "workload.chosen"})) return;
  if (o.grid.cells() > most_experts / o.expert_layers)
    report.error("workload.grid", fmt::format("{} layers of {} experts: at most {} in all are "
                                              "possible",
                                              o.expert_layers, o.grid.cells(), most_experts));
  if (o.chosen > o.grid.cells())
    report.error("workload.chosen", fmt::format("{} experts for a row: a layer has only {}",
                                                o.chosen, o.grid.cells()));
}

template <class V>
void describe(V& v, mixture_options& o) {
  v.field("layers", o.layers,
          "layers of attention and feed-forward in the trunk, before the "
          "experts",
          {.at_least = 0, .at_most = 64});
  v.field("heads", o.heads, "heads of attention; `dim` is a multiple of twice as many",
          {.at_least = 1, .at_most = 256});
  v.field("dim", o.dim, "width", {.at_least = 2, .at_most = 4096});
  v.field("context", o.context, "bytes of text in a sample", {.at_least = 1, .at_most = 4096});
  v.field("experts", o.experts, expert_blocks_meaning(), {.one_of = expert_blocks().names()});
  v.field("expert_layers", o.expert_layers, "layers of experts", {.at_least = 1, .at_most = 64});
  v.field("grid", o.grid, "the grid on which each layer's experts stand, like 4x4 or 8x8x8");
  v.field("chosen", o.chosen, "experts that a token or a sample gets in each layer",
          {.at_least = 1, .at_most = 256});
  v.field("balance", o.balance, "factor of the gates' balance loss",
          {.at_least = 0, .at_most = 1000});
  describe_gate(v, o.gate);
}

} // namespace
} // namespace mixture_workload_parts

workload_definition mixture_workload() {
  using namespace mixture_workload_parts;
  workload_definition out;
  out.name = "mixture";
  out.meaning = "a language model over bytes with a mixture of experts";
  out.options = options_box::of(mixture_options{});
  out.learns_text = true;
  out.check = [](const scenario& what, checking& report) {
    check_sizes(what, report);
    check_texts(what, "a mixture", report);
  };
  out.possible = [](const workload_choice& of) {
    return kernels::validate(trunk_of(of.as<mixture_options>()));
  };
  out.tensors = [](const workload_choice& of) { return tensors_of(of.as<mixture_options>()); };
  out.sample_flops = [](const workload_choice& of) {
    const auto flops = flops_of(of.as<mixture_options>());
    return kernels::forward_and_backward * (flops.trunk + flops.experts);
  };
  out.describe_model = [](const workload_choice& of) {
    const auto& o = of.as<mixture_options>();
    return json_text(nlohmann::json{{"layers", o.layers},
                                    {"heads", o.heads},
                                    {"dim", o.dim},
                                    {"context", o.context},
                                    {"experts", o.experts},
                                    {"expert_layers", o.expert_layers},
                                    {"grid", sides_of(o)},
                                    {"chosen", o.chosen}});
  };
  out.fingerprint = [](const workload_choice& of) {
    const auto& o = of.as<mixture_options>();
    return fmt::format("mixture: layers {}, heads {}, dim {}, context {}, {} of {} x {} {} experts",
                       o.layers, o.heads, o.dim, o.context, o.chosen, o.expert_layers,
                       kernels::to_string(o.grid), o.experts);
  };
  out.experts = parts_of;
  out.prepare = prepare;
  out.starter = {"a small language model over bytes with sixteen experts",
                 "  layers: 1\n  heads: 4\n  dim: 32\n  context: 32\n  grid: 4x4\n  chosen: 2\n",
                 "{kind: adamw, learning_rate: 0.003, beta2: 0.95}"};
  return out;
}

} // namespace shoal::scenarios
