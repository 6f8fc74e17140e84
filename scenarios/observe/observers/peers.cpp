#include "actors/training/observations.hpp"
#include "scenarios/observe/observers/all.hpp"

namespace shoal::scenarios::observing {

namespace {

class peers_observer final : public run_observer {
public:
  explicit peers_observer(run_books& books) : books_(books) {}

  void on_observation(const seen_observation& seen) override {
    if (const auto* x = actors::get_if<actors::phase_changed>(&seen.what);
        x && x->phase == actors::peer_phase::gone)
      books_.left(seen.time, seen.peer, "left");
  }

  void set_metrics(duration) override {
    const auto set = [&](metric which, std::uint64_t value) {
      books_.values.set(which, static_cast<double>(value));
    };
    set(metric::peers_alive, books_.peers.alive());
    set(metric::peers_joined, books_.peers.joined());
    set(metric::peers_left, books_.peers.left());
  }

  void finish(const end_facts&, summary& into) override {
    into.peers = {books_.peers.joined(), books_.peers.left(), books_.peers.alive()};
  }

  result<void> close() override { return books_.directory->write("peers.csv", books_.peers.csv()); }

private:
  run_books& books_;
};

} // namespace

result<std::unique_ptr<run_observer>> peers(run_books& books) {
  return std::unique_ptr<run_observer>(std::make_unique<peers_observer>(books));
}

} // namespace shoal::scenarios::observing
