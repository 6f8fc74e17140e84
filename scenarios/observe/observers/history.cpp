#include "scenarios/observe/observers/all.hpp"

namespace shoal::scenarios::observing {

namespace {

class history_observer final : public run_observer {
public:
  explicit history_observer(run_books& books) : books_(books) {}

  bool sees_events() const override { return true; }
  void on_event(const netem::delivered_event& event) override { books_.history.add(event); }

  void set_metrics(duration) override {
    books_.values.set(metric::events, static_cast<double>(books_.history.events()));
  }

  void finish(const end_facts& facts, summary& into) override {
    if (facts.deterministic) into.event_hash = books_.history.current().hex();
  }

private:
  run_books& books_;
};

} // namespace

result<std::unique_ptr<run_observer>> history(run_books& books) {
  return std::unique_ptr<run_observer>(std::make_unique<history_observer>(books));
}

} // namespace shoal::scenarios::observing
