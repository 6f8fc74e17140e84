#include "scenarios/workloads/timing.hpp"

#include "actors/training/optimizer_step.hpp"
#include "kernels/base/check.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace shoal::scenarios {

// A workload may name its parts as other workloads name theirs.
namespace timing_workload_parts {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

class size_only_work final : public actors::workload {
public:
  size_only_work(const timing_options& from, std::uint64_t state_bytes)
      : from_(from), values_(from.parameters), state_bytes_(state_bytes),
        sample_bytes_(from.sample_size.bytes) {}
  std::uint64_t value_count() const override { return values_; }
  std::vector<kernels::tensor_slot> layout() const override {
    return from_.rows > 1 ? matrix_of(from_.parameters, from_.rows)
                          : std::vector<kernels::tensor_slot>{};
  }
  std::uint64_t sample_bytes() const override { return sample_bytes_; }
  bool is_size_only() const override { return true; }
  actors::model_state initial() const override {
    actors::model_state out;
    out.parameters = payload::size_only(4 * values_);
    out.optimizer = payload::size_only(state_bytes_);
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
  timing_options from_;
  std::uint64_t values_, state_bytes_, sample_bytes_;
};

class size_only_source final : public actors::sample_source {
public:
  explicit size_only_source(std::uint32_t bytes) : bytes_(bytes) {}
  std::uint32_t sample_bytes() const override { return bytes_; }
  void read(std::uint64_t, std::span<std::byte>) const override {
    SHOAL_CHECK(false, "a size-only source is not read");
  }
  bool is_size_only() const override { return true; }

private:
  std::uint32_t bytes_;
};

class prepared_timing final : public prepared_workload {
public:
  prepared_timing(std::shared_ptr<const actors::workload> work,
                  std::shared_ptr<const actors::sample_source> source)
      : work_(std::move(work)), source_(std::move(source)) {}
  std::shared_ptr<const actors::workload> work() const override { return work_; }
  std::shared_ptr<const actors::sample_source> source() const override { return source_; }
  double held_out_loss(const actors::model_state&) const override { return nan; }
  result<void> save(const actors::model_state&, std::uint64_t, const std::string&) const override {
    return {};
  }
  std::string sample_text(const actors::model_state&, std::uint64_t) const override { return {}; }

private:
  std::shared_ptr<const actors::workload> work_;
  std::shared_ptr<const actors::sample_source> source_;
};

result<std::unique_ptr<prepared_workload>> prepare(const scenario& from, bool) {
  const auto optimizer = optimizer_of(from.training.optimizer);
  if (!optimizer) return failure{optimizer.error()};
  const auto& options = from.workload.as<timing_options>();
  return std::unique_ptr<prepared_workload>{std::make_unique<prepared_timing>(
      std::make_shared<size_only_work>(options,
                                       kernels::state_bytes(*optimizer, options.parameters)),
      std::make_shared<size_only_source>(static_cast<std::uint32_t>(options.sample_size.bytes)))};
}

} // namespace
} // namespace timing_workload_parts

template <class V>
void describe(V& v, timing_options& o) {
  using namespace timing_workload_parts;
  v.field("parameters", o.parameters, "how many numbers are averaged",
          {.at_least = 1, .at_most = 1e12});
  v.field("rows", o.rows,
          "the parameters are one matrix of so many rows, for `averaging.power_sgd_rank`; divides "
          "`parameters`",
          {.at_least = 1, .at_most = 1e9, .hide_default = true});
  v.field("sample_size", o.sample_size, "bytes streamed for one sample");
  v.field("activation_size", o.activation_size,
          "bytes of one sample between two layers, uncompressed, for the method 'pipeline'",
          {.at_least = 4, .hide_default = true});
}

workload_definition timing_workload() {
  using namespace timing_workload_parts;
  workload_definition out;
  out.name = "timing";
  out.meaning = "only sizes and durations";
  out.options = options_box::of(timing_options{});
  out.has_numbers = false;
  out.check = [](const scenario& what, checking& report) {
    const auto& options = what.workload.as<timing_options>();
    check_rows(options.parameters, options.rows, report);
  };
  out.possible = [](const workload_choice& of) {
    const auto& options = of.as<timing_options>();
    return possible_matrix(options.parameters, options.rows);
  };
  out.tensors = [](const workload_choice& of) {
    const auto& options = of.as<timing_options>();
    return matrix_of(options.parameters, options.rows);
  };
  // The sample of a model that is not there: tokens of four bytes.
  out.sample_flops = [](const workload_choice& of) {
    const auto& options = of.as<timing_options>();
    return 6 * static_cast<double>(options.parameters) *
           std::max(static_cast<double>(options.sample_size.bytes) / 4, 1.0);
  };
  out.fingerprint = [](const workload_choice& of) {
    return fmt::format("timing: parameters {}", of.as<timing_options>().parameters);
  };
  out.shape_between_stages = [](const workload_choice& of) {
    return sample_shape{1, of.as<timing_options>().activation_size.bytes / sizeof(float)};
  };
  out.prepare = prepare;
  out.starter = {
      "nothing is computed; messages have the sizes, and steps the durations, of a real model",
      "  parameters: 10000000\n  sample_size: 1KiB\n", "{kind: sgd, learning_rate: 0.01}"};
  return out;
}

workload_choice timing_of(std::uint64_t parameters, std::uint64_t sample_bytes) {
  using namespace timing_workload_parts;
  return {*workloads().find("timing"),
          timing_options{.parameters = parameters, .sample_size = {sample_bytes}}};
}

} // namespace shoal::scenarios
