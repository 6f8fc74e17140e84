#include "scenarios/observe/observers/all.hpp"

namespace shoal::scenarios::observing {

namespace {

class checks_observer final : public run_observer {
public:
  explicit checks_observer(run_books& books) : checks_(books.checks), values_(books.values) {}

  void on_observation(const seen_observation& seen) override {
    checks_.on_observation(seen.time, seen.peer, seen.what);
  }
  void on_peer_started(const seen_peer& seen) override { checks_.on_started(seen.time, seen.peer); }
  void on_peer_left(const seen_peer& seen) override { checks_.on_left(seen.time, seen.peer); }
  void on_round(const swarm_round& what) override { checks_.on_round(what); }
  void on_fault(const seen_fault& fault) override {
    if (fault.begins && fault.cuts_off) checks_.cut(fault.time);
  }

  void set_metrics(duration) override {
    values_.set(metric::epoch, static_cast<double>(checks_.highest_epoch()));
    values_.set(metric::peers_in_sync, static_cast<double>(checks_.in_sync()));
    values_.set(metric::invariant_violations, static_cast<double>(checks_.violations()));
  }

  void finish(const end_facts&, summary& into) override {
    into.epochs = checks_.highest_epoch();
    for (std::size_t i = 0; i < rule_names.size(); ++i) {
      const invariant& one = checks_.all()[i];
      into.invariants.emplace_back(
          rule_names[i],
          summary::check_totals{one.checked, one.violated, one.first_violation, one.first_time});
    }
  }

private:
  invariants& checks_;
  metrics& values_;
};

} // namespace

result<std::unique_ptr<run_observer>> checks(run_books& books) {
  return std::unique_ptr<run_observer>(std::make_unique<checks_observer>(books));
}

} // namespace shoal::scenarios::observing
