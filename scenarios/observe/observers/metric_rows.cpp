#include "scenarios/observe/observers/all.hpp"

namespace shoal::scenarios::observing {

namespace {

class metric_rows_observer final : public run_observer {
public:
  metric_rows_observer(run_books& books, std::unique_ptr<output_file> csv)
      : books_(books), csv_(std::move(csv)) {}

  void set_metrics(duration time) override {
    books_.values.set(metric::virtual_time, to_seconds(time));
  }
  void on_row(const std::string& row) override {
    if (csv_) csv_->write(row);
    if (books_.options.listener != nullptr) books_.options.listener->metrics_row(row);
  }

  void flush() override {
    if (csv_) csv_->flush();
  }
  const std::optional<failure>* error() const override { return csv_ ? &csv_->error() : nullptr; }
  result<void> close() override {
    auto rows = csv_->commit();
    auto last = books_.directory->write("metrics.prom", books_.values.exposition());
    return rows ? std::move(last) : std::move(rows);
  }

private:
  run_books& books_;
  std::unique_ptr<output_file> csv_;
};

} // namespace

result<std::unique_ptr<run_observer>> metric_rows(run_books& books) {
  auto csv = open_table(books, "metrics.csv", metrics::csv_header());
  if (!csv) return failure{csv.error()};
  return std::unique_ptr<run_observer>(
      std::make_unique<metric_rows_observer>(books, std::move(*csv)));
}

} // namespace shoal::scenarios::observing
