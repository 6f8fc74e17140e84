#include "scenarios/stage/workload_timing.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include <Eigen/Core>

#include "kernels/base/rng.hpp"

namespace shoal::scenarios {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

class hollow_work final : public actors::workload {
 public:
  hollow_work(std::uint64_t values, std::uint64_t state_values, std::uint64_t sample_bytes)
      : values_(values), state_values_(state_values), sample_bytes_(sample_bytes) {}
  std::uint64_t value_count() const override { return values_; }
  std::uint64_t sample_bytes() const override { return sample_bytes_; }
  bool hollow() const override { return true; }
  actors::model_state initial() const override {
    actors::model_state out;
    out.parameters = payload::hollow(4 * values_);
    out.optimizer = payload::hollow(4 * state_values_);
    return out;
  }
  double accumulate(const actors::model_state&, std::span<const std::byte>, std::uint64_t,
                    std::span<double>) const override {
    return 0;
  }
  actors::model_state step(const actors::model_state& at, const payload&) const override {
    auto out = at;
    ++out.step;
    return out;
  }

 private:
  std::uint64_t values_, state_values_, sample_bytes_;
};

class sized_source final : public actors::sample_source {
 public:
  sized_source(std::uint32_t bytes, bool hollow) : bytes_(bytes), hollow_(hollow) {}
  std::uint32_t sample_bytes() const override { return bytes_; }
  /// A quadratic sample is its own index, which is the seed of its centre.
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    std::memset(out.data(), 0, out.size());
    std::memcpy(out.data(), &index, std::min(out.size(), sizeof index));
  }
  bool hollow() const override { return hollow_; }

 private:
  std::uint32_t bytes_;
  bool hollow_;
};

class quadratic_work final : public actors::workload {
 public:
  quadratic_work(std::uint64_t values, std::uint64_t sample_bytes, double rate, std::uint64_t seed)
      : values_(values), sample_bytes_(sample_bytes), rate_(static_cast<float>(rate)), seed_(seed) {}
  std::uint64_t value_count() const override { return values_; }
  std::uint64_t sample_bytes() const override { return sample_bytes_; }
  actors::model_state initial() const override {
    std::vector<float> x(values_);
    auto random = stream(seed_, "quadratic.start");
    for (auto& v : x) v = static_cast<float>(random.normal(0, 3));
    actors::model_state out;
    out.parameters = payload{std::move(x)};
    return out;
  }
  double accumulate(const actors::model_state& at, std::span<const std::byte> samples, std::uint64_t count,
                    std::span<double> gradient_sum) const override {
    Eigen::Map<const Eigen::ArrayXf> x(at.parameters.floats().data(), static_cast<Eigen::Index>(values_));
    Eigen::Map<Eigen::ArrayXd> sum(gradient_sum.data(), static_cast<Eigen::Index>(values_));
    Eigen::ArrayXd difference(static_cast<Eigen::Index>(values_));
    double loss = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t index = 0;
      std::memcpy(&index, samples.data() + i * sample_bytes_, sizeof index);
      auto random = stream(seed_, "quadratic.centre", index);
      for (auto& d : difference) d = random.normal();
      difference = x.cast<double>() - difference;
      sum += difference;
      loss += 0.5 * difference.square().mean();
    }
    return loss;
  }
  actors::model_state step(const actors::model_state& at, const payload& mean_gradient) const override {
    std::vector<float> x(at.parameters.floats().begin(), at.parameters.floats().end());
    Eigen::Map<Eigen::ArrayXf> next(x.data(), static_cast<Eigen::Index>(values_));
    next -= rate_ * Eigen::Map<const Eigen::ArrayXf>(mean_gradient.floats().data(), static_cast<Eigen::Index>(values_));
    auto out = at;
    out.parameters = payload{std::move(x)};
    ++out.step;
    return out;
  }

 private:
  std::uint64_t values_, sample_bytes_;
  float rate_;
  std::uint64_t seed_;
};

class plain_workload final : public prepared_workload {
 public:
  plain_workload(std::shared_ptr<const actors::workload> work, std::shared_ptr<const actors::sample_source> source)
      : work_(std::move(work)), source_(std::move(source)) {}
  std::shared_ptr<const actors::workload> work() const override { return work_; }
  std::shared_ptr<const actors::sample_source> source() const override { return source_; }
  /// Distance from the optimum that infinitely many samples would have: half the mean square of x.
  double held_out_loss(const actors::model_state& state) const override {
    if (work_->hollow()) return nan;
    Eigen::Map<const Eigen::ArrayXf> x(state.parameters.floats().data(),
                                       static_cast<Eigen::Index>(work_->value_count()));
    return 0.5 * x.cast<double>().square().mean();
  }
  reference_losses references(std::uint64_t, unsigned) const override { return {nan, nan}; }
  result<void> save(const actors::model_state&, const std::string&) const override { return {}; }
  std::string sample_text(const actors::model_state&, std::uint64_t) const override { return {}; }

 private:
  std::shared_ptr<const actors::workload> work_;
  std::shared_ptr<const actors::sample_source> source_;
};

}  // namespace

std::unique_ptr<prepared_workload> prepare_timing(const scenario& from) {
  auto values = from.workload.parameters;
  auto state = from.training.optimizer.kind == optimizer_kind::sgd
                   ? (from.training.optimizer.momentum > 0 ? values : 0)
                   : 2 * values;
  auto bytes = static_cast<std::uint32_t>(from.workload.sample_size.bytes);
  return std::make_unique<plain_workload>(std::make_shared<hollow_work>(values, state, bytes),
                                          std::make_shared<sized_source>(bytes, true));
}

std::unique_ptr<prepared_workload> prepare_quadratic(const scenario& from) {
  auto bytes = static_cast<std::uint32_t>(std::max<std::uint64_t>(8, from.workload.sample_size.bytes));
  return std::make_unique<plain_workload>(
      std::make_shared<quadratic_work>(from.workload.parameters, bytes, from.training.optimizer.learning_rate,
                                       from.seed),
      std::make_shared<sized_source>(bytes, false));
}

}  // namespace shoal::scenarios
