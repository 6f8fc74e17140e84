// Workloads 'quadratic' and 'logistic': convex problems whose answer is known
// (kernels/convex_quadratic.hpp, kernels/convex_logistic.hpp). Samples are streamed for real:
// `parameters` float32 values each. A peer computes its gradients from them and draws nothing
// itself.
#include "actors/training/optimizer_step.hpp"
#include "kernels/convex_logistic.hpp"
#include "kernels/convex_problem.hpp"
#include "kernels/convex_quadratic.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <memory>

namespace shoal::scenarios {

// A workload may name its parts as other workloads name theirs.
namespace convex_workload_parts {
namespace {

using problem_ptr = std::shared_ptr<const kernels::convex_problem>;

constexpr std::uint64_t most_parameters = 1 << 22; // samples of 16 MiB

/// The options that both workloads have.
struct convex_options {
  std::uint64_t parameters = 1'000'000;
  std::uint64_t rows = 1; ///< the parameters are a matrix of so many rows
  double condition = 1;   ///< largest to smallest curvature, or variance of a feature
  bool operator==(const convex_options&) const = default;
};

struct quadratic_options : convex_options {
  bool operator==(const quadratic_options&) const = default;
};

struct logistic_options : convex_options {
  double l2 = 1e-4; ///< half of this times the squared weights is added to the loss
  bool operator==(const logistic_options&) const = default;
};

enum class labels { none, right, wrong };

class convex_work final : public actors::workload {
public:
  convex_work(problem_ptr problem, const convex_options& from,
              const kernels::optimizer_config& optimizer, labels has)
      : problem_(std::move(problem)), from_(from), optimizer_(optimizer), labels_(has) {}

  std::uint64_t value_count() const override { return problem_->parameters(); }
  std::vector<kernels::tensor_slot> layout() const override {
    return from_.rows > 1 ? matrix_of(from_.parameters, from_.rows)
                          : std::vector<kernels::tensor_slot>{};
  }
  std::uint64_t sample_bytes() const override { return sizeof(float) * problem_->parameters(); }

  actors::model_state initial() const override {
    std::vector<float> x(problem_->parameters());
    problem_->initial(x);
    return actors::fresh_state(optimizer_, std::move(x));
  }

  double accumulate(const actors::model_state& at, std::span<const std::byte> samples,
                    std::uint64_t count, std::span<double> gradient_sum) const override {
    thread_local std::vector<float> sample;
    sample.resize(problem_->parameters());
    double loss = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto bytes = samples.subspan(i * sample_bytes(), sample_bytes());
      std::memcpy(sample.data(), bytes.data(), bytes.size());
      // The last value of a sample is its label, 0 or 1.
      if (labels_ == labels::wrong) sample.back() = 1 - sample.back();
      loss += problem_->accumulate(at.parameters.floats(), sample, gradient_sum);
    }
    return loss;
  }

  std::shared_ptr<const actors::workload> mislabelled() const override {
    if (labels_ == labels::none) return nullptr;
    return std::make_shared<const convex_work>(problem_, from_, optimizer_, labels::wrong);
  }

  payload repaired(payload averaged) const override {
    return kernels::repaired_state(optimizer_, problem_->parameters(), std::move(averaged));
  }

  actors::model_state step(const actors::model_state& at,
                           const payload& mean_gradient) const override {
    return actors::step_from(at, optimizer_, mean_gradient);
  }

private:
  problem_ptr problem_;
  convex_options from_;
  kernels::optimizer_config optimizer_;
  labels labels_;
};

class convex_source final : public actors::sample_source {
public:
  explicit convex_source(problem_ptr problem) : problem_(std::move(problem)) {}
  std::uint32_t sample_bytes() const override {
    return static_cast<std::uint32_t>(sizeof(float) * problem_->parameters());
  }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    thread_local std::vector<float> sample;
    sample.resize(problem_->parameters());
    problem_->sample(index, sample);
    std::memcpy(out.data(), sample.data(), out.size());
  }

private:
  problem_ptr problem_;
};

class convex_workload final : public prepared_workload {
public:
  convex_workload(const scenario& from, const convex_options& options, problem_ptr problem,
                  const kernels::optimizer_config& optimizer, labels has)
      : scenario_(from), problem_(std::move(problem)), optimizer_(optimizer),
        work_(std::make_shared<const convex_work>(problem_, options, optimizer, has)),
        source_(std::make_shared<const convex_source>(problem_)) {}

  std::shared_ptr<const actors::workload> work() const override { return work_; }
  std::shared_ptr<const actors::sample_source> source() const override { return source_; }
  double held_out_loss(const actors::model_state& state) const override {
    return problem_->held_out_loss(state.parameters.floats());
  }
  bool has_references() const override { return true; }
  reference_losses references(const reference_options& how) const override {
    const auto alone =
        kernels::train_alone(*problem_, optimizer_, traits_of(scenario_).baseline_batch, how.steps);
    return {problem_->held_out_loss(alone), std::numeric_limits<double>::quiet_NaN()};
  }
  result<void> save(const actors::model_state& state, std::uint64_t data_from,
                    const std::string& path) const override {
    return save_checkpoint(scenario_, optimizer_, {}, state, data_from, path);
  }
  std::string sample_text(const actors::model_state&, std::uint64_t) const override { return {}; }

private:
  scenario scenario_;
  problem_ptr problem_;
  kernels::optimizer_config optimizer_;
  std::shared_ptr<const actors::workload> work_;
  std::shared_ptr<const actors::sample_source> source_;
};

result<std::unique_ptr<prepared_workload>>
prepare(const scenario& from, const convex_options& options, problem_ptr problem, labels has) {
  const auto optimizer = optimizer_of(from.training.optimizer);
  if (!optimizer) return failure{optimizer.error()};
  return std::unique_ptr<prepared_workload>{
      std::make_unique<convex_workload>(from, options, std::move(problem), *optimizer, has)};
}

void check_size(const scenario& what, const convex_options& options, checking& report) {
  check_rows(options.parameters, options.rows, report);
  if (report.sound({"workload.parameters"}) && options.parameters > most_parameters)
    report.error(report.given("workload.parameters") ? "workload.parameters" : "workload.kind",
                 fmt::format("{} parameters make samples of {}: {} has at most {} parameters",
                             options.parameters, to_string(data_size{4 * options.parameters}),
                             what.workload.name(), most_parameters));
}

/// The largest curvature of the quadratic is 1.
void warn_of_divergence(const scenario& what, checking& report) {
  const kernels::optimizer_config& o = what.training.optimizer;
  const double most = 2 * (1 + o.momentum);
  if (o.kind == kernels::optimizer_kind::sgd && o.learning_rate >= most && o.clip_norm == 0 &&
      report.sound({"training.optimizer", "training.optimizer.kind",
                    "training.optimizer.learning_rate", "training.optimizer.momentum",
                    "training.optimizer.clip_norm"}))
    report.warn("training.optimizer.learning_rate",
                fmt::format("sgd diverges: the largest curvature is 1, which bears a learning rate "
                            "below 2 (1 + momentum) = {:g}",
                            most));
}

template <class V>
void describe_common(V& v, convex_options& o, const char* parameters, const char* condition) {
  v.field("parameters", o.parameters, parameters, {.at_least = 1, .at_most = 1e12});
  v.field("rows", o.rows,
          "the parameters are one matrix of so many rows, for `averaging.power_sgd_rank`; divides "
          "`parameters`",
          {.at_least = 1, .at_most = 1e9, .hide_default = true});
  v.field("condition", o.condition, condition,
          {.at_least = 1, .at_most = 1e12, .hide_default = true});
}

template <class V>
void describe(V& v, quadratic_options& o) {
  describe_common(v, o, "how many numbers are averaged; a sample has 4 bytes for each",
                  "largest curvature, which is 1, by the smallest");
}

template <class V>
void describe(V& v, logistic_options& o) {
  describe_common(
      v, o,
      "how many numbers are averaged, the last one is the intercept; a sample has 4 bytes for each",
      "largest variance of a feature by the smallest");
  v.field("l2", o.l2, "half of this times the squared weights is added to the loss",
          {.at_least = 0, .at_most = 1e6, .hide_default = true});
}

/// Builds the part that both definitions have in common.
template <class Options>
workload_definition convex(const char* name) {
  workload_definition out;
  out.name = name;
  out.options = options_box::of(Options{});
  out.possible = [](const workload_choice& of) {
    const convex_options& options = of.as<Options>();
    return possible_matrix(options.parameters, options.rows);
  };
  out.tensors = [](const workload_choice& of) {
    const convex_options& options = of.as<Options>();
    return matrix_of(options.parameters, options.rows);
  };
  out.fingerprint = [](const workload_choice& of) {
    return fmt::format("{}: parameters {}", of.name(), of.as<Options>().parameters);
  };
  return out;
}

} // namespace
} // namespace convex_workload_parts

workload_definition quadratic_workload() {
  using namespace convex_workload_parts;
  auto out = convex<quadratic_options>("quadratic");
  out.meaning = "a noisy bowl whose best point is known";
  out.check = [](const scenario& what, checking& report) {
    check_size(what, what.workload.as<quadratic_options>(), report);
    warn_of_divergence(what, report);
  };
  out.prepare = [](const scenario& from, bool) {
    const auto& options = from.workload.as<quadratic_options>();
    return prepare(from, options,
                   std::make_shared<const kernels::convex_quadratic>(options.parameters,
                                                                     options.condition, from.seed),
                   labels::none);
  };
  out.starter = {
      "each sample pulls every number to its own optimum; the best model is known",
      "  parameters: 1000       # a sample has 4 bytes for each\n"
      "  condition: 10          # how much steeper the steepest direction is than the flattest\n",
      "{kind: sgd, learning_rate: 0.1}"};
  return out;
}

workload_definition logistic_workload() {
  using namespace convex_workload_parts;
  auto out = convex<logistic_options>("logistic");
  out.meaning = "logistic regression on drawn data";
  out.has_labels = true;
  out.check = [](const scenario& what, checking& report) {
    const auto& options = what.workload.as<logistic_options>();
    check_size(what, options, report);
    if (report.sound({"workload.parameters"}) && options.parameters < 2)
      report.error(
          report.given("workload.parameters") ? "workload.parameters" : "workload.kind",
          "logistic needs at least 2 parameters: the weight of a feature, and the intercept");
  };
  out.prepare = [](const scenario& from, bool) {
    const auto& options = from.workload.as<logistic_options>();
    return prepare(from, options,
                   std::make_shared<const kernels::convex_logistic>(
                       options.parameters, options.condition, options.l2, from.seed),
                   labels::right);
  };
  out.starter = {
      "logistic regression on drawn data: nothing to read, and little to compute",
      "  parameters: 1001       # weights and the intercept; a sample has 4 bytes for each\n",
      "{kind: sgd, learning_rate: 1}"};
  return out;
}

} // namespace shoal::scenarios
