#include "actors/messages.hpp"
#include "scenarios/observe/observers/all.hpp"
#include "scenarios/observe/traffic_table.hpp"

namespace shoal::scenarios::observing {

namespace {

class traffic_observer final : public run_observer {
public:
  explicit traffic_observer(run_books& books) : books_(books) {}

  bool sees_events() const override { return true; }
  void on_event(const netem::delivered_event& event) override {
    if (event.kind != netem::event_kind::message || event.from.host == netem::no_host ||
        event.to.host == netem::no_host)
      return;
    const std::uint32_t from = machine_of(event.from.host), to = machine_of(event.to.host);
    table_.add(from, to, event.type, event.wire_bytes);
  }
  void on_row(const std::string&) override {
    if (books_.options.listener != nullptr && books_.options.listener->wants_traffic()) tell();
  }

  void finish(const end_facts&, summary&) override {
    if (books_.options.listener != nullptr) tell();
  }
  result<void> close() override { return books_.directory->write("traffic.csv", table_.csv()); }

private:
  std::uint32_t machine_of(netem::host_index host) {
    const host_identity& who = books_.names.of(host);
    if (!table_.knows(who.machine))
      table_.place(who.machine, who.name, books_.options.region_of(who.machine, who.name));
    return who.machine;
  }
  void tell() {
    std::vector<sent_bytes> all;
    table_.tell([&](const sent_bytes& row) { all.push_back(row); });
    books_.options.listener->traffic(all);
  }

  run_books& books_;
  traffic_table table_{
      [](const char* type) { return static_cast<std::uint8_t>(actors::traffic_of(type)); }};
};

} // namespace

result<std::unique_ptr<run_observer>> traffic(run_books& books) {
  std::unique_ptr<run_observer> out;
  if (books.options.region_of && (books.directory != nullptr || books.options.listener != nullptr))
    out = std::make_unique<traffic_observer>(books);
  return out;
}

} // namespace shoal::scenarios::observing
