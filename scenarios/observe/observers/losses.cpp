#include "actors/data/sample_ranges.hpp"
#include "actors/training/observations.hpp"
#include "scenarios/observe/observers/all.hpp"

namespace shoal::scenarios::observing {

namespace {

class losses_observer final : public run_observer {
public:
  explicit losses_observer(run_books& books) : books_(books) {}

  void on_observation(const seen_observation& seen) override {
    if (const auto* x = actors::get_if<actors::trained>(&seen.what)) {
      computed_ += actors::index_count(x->samples);
      loss_sum_ += x->loss_sum;
    }
  }
  void on_held_out_loss(double loss) override {
    if (!first_held_out_) first_held_out_ = loss;
    books_.held_out_loss = loss;
  }

  void set_metrics(duration time) override {
    metrics& values = books_.values;
    const double passed = to_seconds(time - last_row_);
    if (passed > 0) {
      values.set(metric::samples_per_second, static_cast<double>(computed_) / passed);
      if (computed_ > 0) books_.train_loss = loss_sum_ / static_cast<double>(computed_);
      values.set(metric::loss_train, computed_ > 0 ? books_.train_loss : std::nullopt);
      computed_ = 0;
      loss_sum_ = 0;
      last_row_ = time;
    }
    values.set(metric::loss_held_out, books_.held_out_loss);
  }

  void finish(const end_facts& facts, summary& into) override {
    into.loss = facts.loss;
    if (!into.loss.first) into.loss.first = first_held_out_;
    if (!into.loss.final) into.loss.final = books_.held_out_loss;
  }

private:
  run_books& books_;
  std::uint64_t computed_ = 0; // since the last row
  double loss_sum_ = 0;        // the losses of these samples
  duration last_row_{};
  std::optional<double> first_held_out_;
};

} // namespace

result<std::unique_ptr<run_observer>> losses(run_books& books) {
  return std::unique_ptr<run_observer>(std::make_unique<losses_observer>(books));
}

} // namespace shoal::scenarios::observing
