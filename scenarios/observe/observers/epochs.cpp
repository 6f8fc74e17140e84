#include "actors/data/sample_ranges.hpp"
#include "actors/training/observations.hpp"
#include "scenarios/observe/epoch_table.hpp"
#include "scenarios/observe/observers/all.hpp"

namespace shoal::scenarios::observing {

namespace {

class epochs_observer final : public run_observer {
public:
  epochs_observer(run_books& books, std::unique_ptr<output_file> csv)
      : books_(books), csv_(std::move(csv)), table_(books.options.view) {}

  void on_observation(const seen_observation& seen) override {
    if (const auto* x = actors::get_if<actors::trained>(&seen.what))
      table_.trained(x->epoch, actors::index_count(x->samples), x->loss_sum);
    table_.reached(books_.now, books_.checks.highest_epoch());
    keep(table_.rows_that_are_over());
  }
  void on_held_out_loss(double loss) override {
    table_.held_out(books_.checks.highest_epoch(), loss);
  }

  void flush() override {
    if (csv_) csv_->flush();
  }
  const std::optional<failure>* error() const override { return csv_ ? &csv_->error() : nullptr; }
  void finish(const end_facts&, summary&) override { keep(table_.last_rows()); }
  result<void> close() override { return csv_->commit(); }

private:
  void keep(const std::string& rows) {
    if (rows.empty()) return;
    if (csv_) csv_->write(rows);
    if (books_.options.listener != nullptr) books_.options.listener->epoch_rows(rows);
  }

  run_books& books_;
  std::unique_ptr<output_file> csv_;
  epoch_table table_;
};

} // namespace

result<std::unique_ptr<run_observer>> epochs(run_books& books) {
  auto csv = open_table(books, "epochs.csv", epoch_table::csv_header());
  if (!csv) return failure{csv.error()};
  std::unique_ptr<run_observer> out;
  if (*csv || books.options.listener != nullptr)
    out = std::make_unique<epochs_observer>(books, std::move(*csv));
  return out;
}

} // namespace shoal::scenarios::observing
