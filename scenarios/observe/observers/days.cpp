#include "scenarios/observe/observers/all.hpp"

namespace shoal::scenarios::observing {

namespace {

constexpr duration day = std::chrono::hours(24);

class days_observer final : public run_observer {
public:
  explicit days_observer(run_books& books) : books_(books) {}

  void on_time() override {
    while (books_.now - began_ >= day) end_day(began_ + day);
  }
  void on_peer_started(const seen_peer&) override {
    count_peers(books_.now);
    ++alive_;
  }
  void on_peer_left(const seen_peer&) override {
    count_peers(books_.now);
    --alive_;
  }

  void finish(const end_facts&, summary& into) override {
    if (!over_.empty() && books_.now > began_) end_day(books_.now);
    if (over_.size() <= 1) return;
    into.days = over_;
    into.epochs_planned = books_.options.epochs_planned;
  }

private:
  void count_peers(duration until) {
    peer_seconds_ += static_cast<double>(alive_) * to_seconds(until - counted_);
    counted_ = until;
  }

  void end_day(duration time) {
    count_peers(time);
    summary::day_totals total{0, books_.checks.highest_epoch(), books_.samples, 0};
    if (books_.options.bytes_sent)
      for (const std::uint64_t bytes : books_.options.bytes_sent()) total.bytes_sent += bytes;
    over_.push_back({peer_seconds_ / to_seconds(time - began_), total.epochs - before_.epochs,
                     total.samples - before_.samples, total.bytes_sent - before_.bytes_sent});
    before_ = total;
    began_ = time;
    peer_seconds_ = 0;
  }

  run_books& books_;
  std::vector<summary::day_totals> over_;
  summary::day_totals before_; // totals before today; `peers` unused
  duration began_{}, counted_{};
  std::uint64_t alive_ = 0;
  double peer_seconds_ = 0; // sum of the peers' time alive since the day began
};

} // namespace

result<std::unique_ptr<run_observer>> days(run_books& books) {
  return std::unique_ptr<run_observer>(std::make_unique<days_observer>(books));
}

} // namespace shoal::scenarios::observing
