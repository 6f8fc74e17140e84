// Workload 'digits': classifying images of one size, such as MNIST, by kernels/perceptron.hpp. A
// sample is an image's bytes and its label. The last tenth of the images in a fixed random order is
// held out.
#include "actors/training/optimizer_step.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/perceptron.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/workloads/image_samples.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace shoal::scenarios {

// A workload may name its parts as other workloads name theirs.
namespace digits_workload_parts {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct digits_options {
  std::string images, labels;
  std::uint64_t size = 784; ///< bytes of an image
  std::uint64_t hidden = 32;
  std::uint64_t classes = 10;
  bool operator==(const digits_options&) const = default;
};

kernels::perceptron network_of(const digits_options& o) {
  return {o.size, o.hidden, o.classes};
}

class digits_work final : public actors::workload {
public:
  digits_work(const digits_options& from, const kernels::optimizer_config& optimizer,
              std::uint64_t seed, bool wrong = false)
      : from_(from), network_(network_of(from)), optimizer_(optimizer), seed_(seed), wrong_(wrong) {
  }

  std::uint64_t value_count() const override { return network_.parameters(); }
  std::uint64_t sample_bytes() const override { return from_.size + 1; }

  actors::model_state initial() const override {
    std::vector<float> x(network_.parameters());
    network_.initial(seed_, x);
    return actors::fresh_state(optimizer_, std::move(x));
  }

  double accumulate(const actors::model_state& at, std::span<const std::byte> samples,
                    std::uint64_t count, std::span<double> gradient_sum) const override {
    double loss = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto one = samples.subspan(i * sample_bytes(), sample_bytes());
      auto label = std::to_integer<std::size_t>(one.back()) % from_.classes;
      if (wrong_) label = from_.classes - 1 - label;
      loss += network_.accumulate(at.parameters.floats(), pixels(one), label, gradient_sum);
    }
    return loss;
  }

  std::shared_ptr<const actors::workload> mislabelled() const override {
    return std::make_shared<const digits_work>(from_, optimizer_, seed_, true);
  }

  payload repaired(payload averaged) const override {
    return kernels::repaired_state(optimizer_, network_.parameters(), std::move(averaged));
  }

  actors::model_state step(const actors::model_state& at,
                           const payload& mean_gradient) const override {
    return actors::step_from(at, optimizer_, mean_gradient);
  }

  /// The image of a sample, from 0 to 1. Valid until the thread's next call.
  std::span<const float> pixels(std::span<const std::byte> sample) const {
    thread_local std::vector<float> out;
    out.resize(from_.size);
    for (std::size_t j = 0; j < out.size(); ++j)
      out[j] = static_cast<float>(std::to_integer<int>(sample[j])) / 255;
    return out;
  }
  const kernels::perceptron& network() const { return network_; }

private:
  digits_options from_;
  kernels::perceptron network_;
  kernels::optimizer_config optimizer_;
  std::uint64_t seed_;
  bool wrong_;
};

/// The images in passes, each in another order that the seed decides.
class digits_source final : public actors::sample_source {
public:
  digits_source(std::shared_ptr<const image_samples> from, std::uint64_t seed)
      : from_(std::move(from)), seed_(seed) {}
  std::uint32_t sample_bytes() const override { return static_cast<std::uint32_t>(from_->bytes); }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    const auto which = stream(seed_, "digits.sample", index).below(from_->training);
    const auto one = from_->sample(which);
    std::copy(one.begin(), one.end(), out.begin());
  }

private:
  std::shared_ptr<const image_samples> from_;
  std::uint64_t seed_;
};

class prepared_digits final : public prepared_workload {
public:
  prepared_digits(const scenario& from, const digits_options& options,
                  const kernels::optimizer_config& optimizer,
                  std::shared_ptr<const image_samples> samples)
      : scenario_(from), optimizer_(optimizer), samples_(std::move(samples)),
        work_(std::make_shared<const digits_work>(options, optimizer, from.seed)),
        source_(samples_ ? std::make_shared<const digits_source>(samples_, from.seed) : nullptr) {}

  std::shared_ptr<const actors::workload> work() const override { return work_; }
  std::shared_ptr<const actors::sample_source> source() const override { return source_; }
  std::string data_digest() const override {
    return samples_ ? hash_of(samples_->all).hex() : std::string{};
  }
  double held_out_loss(const actors::model_state& state) const override {
    return judge(state).loss;
  }
  double held_out_accuracy(const actors::model_state& state) const override {
    return judge(state).right;
  }
  result<void> save(const actors::model_state& state, std::uint64_t data_from,
                    const std::string& path) const override {
    return save_checkpoint(scenario_, optimizer_, data_digest(), state, data_from, path);
  }
  std::string sample_text(const actors::model_state&, std::uint64_t) const override { return {}; }

private:
  /// Means over the held-out samples.
  struct judgement {
    double loss = nan, right = nan;
  };
  judgement judge(const actors::model_state& state) const {
    if (!samples_) return {};
    judgement out{0, 0};
    for (auto i = samples_->training; i < samples_->count(); ++i) {
      const auto one = samples_->sample(i);
      const auto each = work_->network().judge(state.parameters.floats(), work_->pixels(one),
                                               std::to_integer<std::size_t>(one.back()));
      out.loss += each.loss;
      out.right += each.right ? 1 : 0;
    }
    const auto count = static_cast<double>(samples_->count() - samples_->training);
    return {out.loss / count, out.right / count};
  }

  scenario scenario_;
  kernels::optimizer_config optimizer_;
  std::shared_ptr<const image_samples> samples_;
  std::shared_ptr<const digits_work> work_;
  std::shared_ptr<const actors::sample_source> source_;
};

result<std::unique_ptr<prepared_workload>> prepare(const scenario& from, bool needs_data) {
  const auto optimizer = optimizer_of(from.training.optimizer);
  if (!optimizer) return failure{optimizer.error()};
  const auto& options = from.workload.as<digits_options>();
  auto samples = read_image_samples(options.images, options.labels,
                                    {options.size, options.classes, "workload"});
  if (!samples && needs_data) return failure{samples.error()};
  return std::unique_ptr<prepared_workload>{std::make_unique<prepared_digits>(
      from, options, *optimizer,
      samples ? std::make_shared<const image_samples>(std::move(*samples)) : nullptr)};
}

template <class V>
void describe(V& v, digits_options& o) {
  v.field("images", o.images,
          "IDX file of the images, plain or with the ending `.gz`, such as MNIST's "
          "`t10k-images-idx3-ubyte`; a relative path begins where the program runs");
  v.field("labels", o.labels, "IDX file of the labels");
  v.field("size", o.size, "bytes of an image", {.at_least = 1, .at_most = 1 << 20});
  v.field("hidden", o.hidden,
          "units of the hidden layer; 0: none, which is multinomial logistic regression",
          {.at_most = 1 << 20});
  v.field("classes", o.classes, "number of labels", {.at_least = 2, .at_most = 256});
}

} // namespace
} // namespace digits_workload_parts

workload_definition digits_workload() {
  using namespace digits_workload_parts;
  workload_definition out;
  out.name = "digits";
  out.meaning = "classifying small images, such as MNIST, by a network with one hidden layer";
  out.options = options_box::of(digits_options{});
  out.has_labels = true;
  out.check = [](const scenario& what, checking& report) {
    const auto& options = what.workload.as<digits_options>();
    for (const auto& [path, file] : {std::pair{"workload.images", options.images},
                                     std::pair{"workload.labels", options.labels}}) {
      if (report.sound({path}) && file.empty())
        report.error(report.given(path) ? path : "workload.kind",
                     fmt::format("digits needs {}: the path of an IDX file", path));
    }
  };
  out.possible = [](const workload_choice&) { return result<void>{}; };
  out.tensors = [](const workload_choice& of) {
    return matrix_of(network_of(of.as<digits_options>()).parameters(), 1);
  };
  out.fingerprint = [](const workload_choice& of) {
    const auto& o = of.as<digits_options>();
    return fmt::format("digits: size {}, hidden {}, classes {}", o.size, o.hidden, o.classes);
  };
  out.prepare = prepare;
  out.starter = {"images of handwritten digits; MNIST's files have these names",
                 "  images: t10k-images-idx3-ubyte\n  labels: t10k-labels-idx1-ubyte\n",
                 "{kind: sgd, learning_rate: 0.1}"};
  return out;
}

} // namespace shoal::scenarios
