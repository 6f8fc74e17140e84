#include "scenarios/observe/observers/all.hpp"

namespace shoal::scenarios::observing {

namespace {

class events_observer final : public run_observer {
public:
  events_observer(run_books& books, std::unique_ptr<event_log> log)
      : books_(books), log_(std::move(log)) {}

  bool sees_events() const override { return true; }
  void on_event(const netem::delivered_event& event) override { log_->on_event(event); }
  void on_observation(const seen_observation& seen) override {
    log_->on_observation(
        seen.time, books_.peers.contains(seen.peer) ? std::optional(seen.machine) : std::nullopt,
        seen.host, seen.what);
  }
  void on_round(const swarm_round& what) override { log_->on_round(what); }
  void on_fault(const seen_fault& fault) override {
    log_->on_fault(fault.time, fault.number, fault.action, fault.begins, fault.hosts);
  }

  void flush() override { log_->flush(); }
  const std::optional<failure>* error() const override { return &log_->error(); }
  result<void> close() override { return log_->close(); }

private:
  run_books& books_;
  std::unique_ptr<event_log> log_;
};

} // namespace

result<std::unique_ptr<run_observer>> events(run_books& books) {
  std::unique_ptr<run_observer> out;
  if (books.directory == nullptr) return out;
  auto file = books.directory->open("events.jsonl.zst");
  if (!file) return failure{file.error()};
  const observer_options& options = books.options;
  const std::vector<std::uint32_t> sampled =
      sample_machines(options.seed, options.peer_machines, options.record.peers);
  const bool everyone = options.record.peers == 0 || sampled.size() == options.peer_machines.size();
  out = std::make_unique<events_observer>(
      books, std::make_unique<event_log>(std::move(*file), options.record.events, books.names,
                                         everyone, sampled, options.view));
  return out;
}

} // namespace shoal::scenarios::observing
