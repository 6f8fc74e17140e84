#include "scenarios/stage/workload_convex.hpp"

#include <cstring>
#include <limits>

#include "kernels/convex_logistic.hpp"
#include "kernels/convex_quadratic.hpp"
#include "scenarios/schema/start_from.hpp"
#include "scenarios/stage/optimizer_step.hpp"

namespace shoal::scenarios {

namespace {

using problem_ptr = std::shared_ptr<const kernels::convex_problem>;

class convex_work final : public actors::workload {
 public:
  convex_work(problem_ptr problem, const workload_options& from, const kernels::optimizer_config& optimizer)
      : problem_(std::move(problem)), from_(from), optimizer_(optimizer) {}

  std::uint64_t value_count() const override { return problem_->parameters(); }
  std::vector<kernels::tensor_slot> layout() const override { return matrix_of(from_); }
  std::uint64_t sample_bytes() const override { return sizeof(float) * problem_->parameters(); }

  actors::model_state initial() const override {
    std::vector<float> x(problem_->parameters());
    problem_->initial(x);
    return fresh_state(optimizer_, std::move(x));
  }

  double accumulate(const actors::model_state& at, std::span<const std::byte> samples, std::uint64_t count,
                    std::span<double> gradient_sum) const override {
    thread_local std::vector<float> sample;
    sample.resize(problem_->parameters());
    double loss = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto bytes = samples.subspan(i * sample_bytes(), sample_bytes());
      std::memcpy(sample.data(), bytes.data(), bytes.size());
      loss += problem_->accumulate(at.parameters.floats(), sample, gradient_sum);
    }
    return loss;
  }

  payload mended(payload averaged) const override { return mended_state(optimizer_, std::move(averaged), problem_->parameters()); }

  actors::model_state step(const actors::model_state& at, const payload& mean_gradient) const override {
    return step_from(at, optimizer_, mean_gradient);
  }

 private:
  problem_ptr problem_;
  workload_options from_;
  kernels::optimizer_config optimizer_;
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
  convex_workload(const scenario& from, problem_ptr problem, const kernels::optimizer_config& optimizer)
      : scenario_(from),
        problem_(std::move(problem)),
        optimizer_(optimizer),
        work_(std::make_shared<const convex_work>(problem_, from.workload, optimizer)),
        source_(std::make_shared<const convex_source>(problem_)) {}

  std::shared_ptr<const actors::workload> work() const override { return work_; }
  std::shared_ptr<const actors::sample_source> source() const override { return source_; }
  double held_out_loss(const actors::model_state& state) const override {
    return problem_->held_out_loss(state.parameters.floats());
  }
  bool has_references() const override { return true; }
  reference_losses references(std::uint64_t steps, unsigned) const override {
    const auto alone = kernels::train_alone(*problem_, optimizer_, scenario_.training.target_batch, steps);
    return {problem_->held_out_loss(alone), std::numeric_limits<double>::quiet_NaN()};
  }
  result<void> save(const actors::model_state& state, std::uint64_t data_from, const std::string& path) const override {
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

problem_ptr problem_of(const workload_options& from, std::uint64_t seed) {
  const auto parameters = static_cast<std::size_t>(from.parameters);
  if (from.kind == workload_kind::logistic)
    return std::make_shared<const kernels::convex_logistic>(parameters, from.condition, from.l2, seed);
  return std::make_shared<const kernels::convex_quadratic>(parameters, from.condition, seed);
}

}  // namespace

result<std::unique_ptr<prepared_workload>> prepare_convex(const scenario& from) {
  const auto optimizer = optimizer_of(from.training.optimizer);
  if (!optimizer) return failure{optimizer.error()};
  return std::unique_ptr<prepared_workload>{std::make_unique<convex_workload>(
      from, problem_of(from.workload, from.seed), *optimizer)};
}

}  // namespace shoal::scenarios
