#include "scenarios/observe/observers/all.hpp"

namespace shoal::scenarios::observing {

namespace {

class network_observer final : public run_observer {
public:
  explicit network_observer(run_books& books) : books_(books) {}

  void set_metrics(duration) override {
    const observer_options& ask = books_.options;
    if (ask.wire) books_.values.set(ask.wire());
    if (!ask.bytes_sent) return;
    const std::array<std::uint64_t, 4> bytes = ask.bytes_sent();
    const auto set = [&](metric which, std::uint64_t value) {
      books_.values.set(which, static_cast<double>(value));
    };
    set(metric::bytes_data, bytes[0]);
    set(metric::bytes_averaging, bytes[1]);
    set(metric::bytes_state, bytes[2]);
    set(metric::bytes_control, bytes[3]);
  }

  void finish(const end_facts&, summary& into) override {
    if (!books_.options.bytes_sent) return;
    const std::array<std::uint64_t, 4> bytes = books_.options.bytes_sent();
    into.bytes_sent = {bytes[0], bytes[1], bytes[2], bytes[3]};
  }

private:
  run_books& books_;
};

} // namespace

result<std::unique_ptr<run_observer>> network(run_books& books) {
  return std::unique_ptr<run_observer>(std::make_unique<network_observer>(books));
}

} // namespace shoal::scenarios::observing
