#include "scenarios/stage/workload_timing.hpp"

#include <limits>

#include "kernels/base/check.hpp"
#include "scenarios/schema/start_from.hpp"
#include "scenarios/stage/optimizer_step.hpp"

namespace shoal::scenarios {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

class hollow_work final : public actors::workload {
 public:
  hollow_work(const workload_options& from, std::uint64_t state_bytes)
      : from_(from), values_(from.parameters), state_bytes_(state_bytes), sample_bytes_(from.sample_size.bytes) {}
  std::uint64_t value_count() const override { return values_; }
  std::vector<kernels::tensor_slot> layout() const override { return matrix_of(from_); }
  std::uint64_t sample_bytes() const override { return sample_bytes_; }
  bool hollow() const override { return true; }
  actors::model_state initial() const override {
    actors::model_state out;
    out.parameters = payload::hollow(4 * values_);
    out.optimizer = payload::hollow(state_bytes_);
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
  workload_options from_;
  std::uint64_t values_, state_bytes_, sample_bytes_;
};

class hollow_source final : public actors::sample_source {
 public:
  explicit hollow_source(std::uint32_t bytes) : bytes_(bytes) {}
  std::uint32_t sample_bytes() const override { return bytes_; }
  void read(std::uint64_t, std::span<std::byte>) const override { SHOAL_CHECK(false, "a hollow source is not read"); }
  bool hollow() const override { return true; }

 private:
  std::uint32_t bytes_;
};

class timing_workload final : public prepared_workload {
 public:
  timing_workload(std::shared_ptr<const actors::workload> work, std::shared_ptr<const actors::sample_source> source)
      : work_(std::move(work)), source_(std::move(source)) {}
  std::shared_ptr<const actors::workload> work() const override { return work_; }
  std::shared_ptr<const actors::sample_source> source() const override { return source_; }
  double held_out_loss(const actors::model_state&) const override { return nan; }
  reference_losses references(std::uint64_t, unsigned) const override { return {nan, nan}; }
  result<void> save(const actors::model_state&, std::uint64_t, const std::string&) const override { return {}; }
  std::string sample_text(const actors::model_state&, std::uint64_t) const override { return {}; }

 private:
  std::shared_ptr<const actors::workload> work_;
  std::shared_ptr<const actors::sample_source> source_;
};

}  // namespace

result<std::unique_ptr<prepared_workload>> prepare_timing(const scenario& from) {
  const auto optimizer = optimizer_of(from.training.optimizer);
  if (!optimizer) return failure{optimizer.error()};
  auto bytes = static_cast<std::uint32_t>(from.workload.sample_size.bytes);
  return std::unique_ptr<prepared_workload>{std::make_unique<timing_workload>(
      std::make_shared<hollow_work>(from.workload, kernels::state_bytes(*optimizer, from.workload.parameters)),
      std::make_shared<hollow_source>(bytes))};
}

}  // namespace shoal::scenarios
