#include "scenarios/observe/observers/all.hpp"
#include "scenarios/observe/output_text.hpp"
#include "scenarios/observe/transfer_log.hpp"

#include <algorithm>
#include <utility>

namespace shoal::scenarios::observing {

namespace {

class transfers_observer final : public run_observer {
public:
  transfers_observer(run_books& books, std::unique_ptr<transfer_log> log)
      : books_(books), log_(std::move(log)) {}

  void on_transfer(const netem::transfer_record& what) override {
    if (log_) log_->on_transfer(what);
    if (books_.options.listener == nullptr || heard_ >= books_.options.record.transfers) return;
    ++heard_;
    tell(what);
  }

  void flush() override {
    if (log_) log_->flush();
  }
  const std::optional<failure>* error() const override { return log_ ? &log_->error() : nullptr; }
  result<void> close() override { return log_ ? log_->close() : result<void>{}; }

private:
  void tell(const netem::transfer_record& what) {
    // The limit that lasted longest, the first one of equals.
    std::vector<std::pair<std::size_t, duration>> limits; // step that has it first, its time
    for (std::size_t i = 0; i < what.steps.size(); ++i) {
      const netem::transfer_step& step = what.steps[i];
      const duration end =
          i + 1 < what.steps.size() ? std::min(what.steps[i + 1].at, what.left) : what.left;
      const auto same = std::find_if(limits.begin(), limits.end(), [&](const auto& one) {
        const netem::transfer_step& other = what.steps[one.first];
        return other.why == step.why &&
               (step.why != netem::rate_limit::link || other.link == step.link);
      });
      if (same != limits.end())
        same->second += end - std::max(step.at, what.begun);
      else
        limits.emplace_back(i, end - std::max(step.at, what.begun));
    }
    std::string why;
    duration held{};
    if (!limits.empty()) {
      const auto& [first, time] =
          *std::max_element(limits.begin(), limits.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
      const netem::transfer_step& step = what.steps[first];
      why = step.why == netem::rate_limit::link ? books_.options.link_name(step.link)
                                                : limit_in_words(netem::name_of(step.why));
      held = time;
    }
    const std::string from = books_.names.of(what.from.host).name,
                      to = books_.names.of(what.to.host).name;
    books_.options.listener->transfer({what.number, from, to, what.type, what.bytes, what.sent,
                                       what.begun, what.left, what.arrives, what.cut, why, held});
  }

  run_books& books_;
  std::unique_ptr<transfer_log> log_;
  std::uint64_t heard_ = 0;
};

} // namespace

result<std::unique_ptr<run_observer>> transfers(run_books& books) {
  std::unique_ptr<transfer_log> log;
  const std::uint64_t most = books.options.record.transfers;
  if (books.directory != nullptr && most > 0 && books.options.link_name) {
    auto file = books.directory->open("transfers.jsonl.zst");
    if (!file) return failure{file.error()};
    log = std::make_unique<transfer_log>(std::move(*file), most, books.names,
                                         books.options.link_name);
  }
  std::unique_ptr<run_observer> out;
  if (log || books.options.listener != nullptr)
    out = std::make_unique<transfers_observer>(books, std::move(log));
  return out;
}

} // namespace shoal::scenarios::observing
