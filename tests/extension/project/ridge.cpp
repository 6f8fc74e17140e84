// The workload 'ridge': linear regression with a penalty on the squared weights. A sample has
// `features` numbers x and a target y, drawn as y = <true weights, x> + noise. Its loss is
//   (<w, x> - y)^2 / 2 + l2 |w|^2 / 2.
#include "actors/training/optimizer_step.hpp"
#include "kernels/base/rng.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "scenarios/workloads/workload.hpp"

#include <cstring>
#include <numeric>

namespace extension {
using namespace shoal;
using namespace shoal::scenarios;

struct ridge_options {
  std::uint64_t features = 20;
  double l2 = 1e-3;
  static constexpr double noise = 0.2; // standard deviation of the targets
  bool operator==(const ridge_options&) const = default;
};

template <class V>
void describe(V& v, ridge_options& o) {
  v.field("features", o.features, "length of a sample's vector", {.at_least = 1, .at_most = 1e6});
  v.field("l2", o.l2, "half of this times the squared weights is added to the loss",
          {.at_least = 0, .at_most = 1e3});
}

struct ridge_work final : actors::workload {
  explicit ridge_work(const scenario& from)
      : o(from.workload.as<ridge_options>()), optimizer(*optimizer_of(from.training.optimizer)),
        seed(from.seed) {
    stream(seed, "ridge.truth").normals(truth);
  }
  std::uint64_t value_count() const override { return o.features; }
  std::uint64_t sample_bytes() const override { return sizeof(float) * (o.features + 1); }
  double penalty(std::span<const float> w) const {
    return o.l2 / 2 * std::inner_product(w.begin(), w.end(), w.begin(), 0.0);
  }
  actors::model_state initial() const override {
    return actors::fresh_state(optimizer, std::vector<float>(o.features));
  }
  double accumulate(const actors::model_state& at, std::span<const std::byte> bytes,
                    std::uint64_t count, std::span<double> sum) const override {
    const auto w = at.parameters.floats();
    std::vector<float> x(o.features + 1); // and the target
    double loss = 0;
    for (; count > 0; --count, bytes = bytes.subspan(sample_bytes())) {
      std::memcpy(x.data(), bytes.data(), sample_bytes());
      const double error = std::inner_product(w.begin(), w.end(), x.begin(), -double{x.back()});
      for (std::size_t i = 0; i < w.size(); ++i) sum[i] += error * x[i] + o.l2 * w[i];
      loss += error * error / 2 + penalty(w);
    }
    return loss;
  }
  actors::model_state step(const actors::model_state& at, const payload& mean) const override {
    return actors::step_from(at, optimizer, mean);
  }
  ridge_options o;
  kernels::optimizer_config optimizer;
  std::uint64_t seed;
  std::vector<double> truth = std::vector<double>(o.features);
};

struct ridge_source final : actors::sample_source {
  explicit ridge_source(std::shared_ptr<const ridge_work> of) : work(std::move(of)) {}
  std::uint32_t sample_bytes() const override {
    return static_cast<std::uint32_t>(work->sample_bytes());
  }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    auto random = stream(work->seed, "ridge.sample", index);
    std::vector<float> x(work->o.features);
    for (float& each : x) each = static_cast<float>(random.normal());
    x.push_back(static_cast<float>(std::inner_product(x.begin(), x.end(), work->truth.begin(),
                                                      work->o.noise * random.normal())));
    std::memcpy(out.data(), x.data(), out.size());
  }
  std::shared_ptr<const ridge_work> work;
};

struct prepared_ridge final : prepared_workload {
  explicit prepared_ridge(const scenario& from)
      : what(from), ridge(std::make_shared<const ridge_work>(from)) {}
  std::shared_ptr<const actors::workload> work() const override { return ridge; }
  std::shared_ptr<const actors::sample_source> source() const override {
    return std::make_shared<ridge_source>(ridge);
  }
  double held_out_loss(
      const actors::model_state& at) const override { // the mean over all samples that can be drawn
    const auto w = at.parameters.floats();
    const auto square = [](double a, double b) { return (a - b) * (a - b); };
    return ridge->penalty(w) + std::inner_product(w.begin(), w.end(), ridge->truth.begin(),
                                                  ridge->o.noise * ridge->o.noise, std::plus(),
                                                  square) /
                                   2;
  }
  result<void> save(const actors::model_state& at, std::uint64_t from,
                    const std::string& to) const override {
    return save_checkpoint(what, ridge->optimizer, {}, at, from, to);
  }
  std::string sample_text(const actors::model_state&, std::uint64_t) const override { return {}; }
  scenario what;
  std::shared_ptr<const ridge_work> ridge;
};

workload_definition ridge_workload() {
  workload_definition out;
  static_cast<kind_definition&>(out) = {"ridge",
                                        "linear regression with a penalty on the squared weights",
                                        options_box::of(ridge_options{})};
  out.check = [](const scenario& s, checking& to) {
    if (s.workload.as<ridge_options>().l2 > 1) to.warn("workload.l2", "weights stay near zero");
  };
  out.possible = [](const workload_choice&) { return result<void>{}; };
  out.tensors = [](const workload_choice& of) {
    return matrix_of(of.as<ridge_options>().features, 1);
  };
  out.fingerprint = [](const workload_choice& of) {
    return "ridge: features " + std::to_string(of.as<ridge_options>().features);
  };
  out.prepare = [](const scenario& from, bool) -> result<std::unique_ptr<prepared_workload>> {
    if (const auto optimizer = optimizer_of(from.training.optimizer); !optimizer)
      return failure{optimizer.error()};
    return std::unique_ptr<prepared_workload>{std::make_unique<prepared_ridge>(from)};
  };
  return out;
}
} // namespace extension
