// The seam for a new protocol's observer: one file, one line.
#include "actors/training/observations.hpp"
#include "scenarios/observe/run_observer.hpp"
#include "scenarios/observe/run_observers.hpp"
#include "tests/scenarios/observe/helpers.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

namespace {

const std::string watched_scenario = "watched by a test";
std::vector<std::string> heard; // by the one observer at a time

class watcher final : public run_observer {
public:
  explicit watcher(run_books& books) : books_(books) {}

  void on_event(const netem::delivered_event&) override { heard.push_back("event"); }
  void on_observation(const seen_observation& seen) override {
    if (actors::holds_alternative<actors::phase_changed>(seen.what))
      heard.push_back("phase of " + books_.peers.name_of(seen.peer));
  }
  void on_peer_started(const seen_peer& seen) override {
    heard.push_back("started " + std::string(seen.host));
  }
  void on_peer_left(const seen_peer& seen) override {
    heard.push_back(std::string(seen.reason) + " " + std::string(seen.host));
  }
  void set_metrics(duration) override { books_.values.set(metric::misbehaved, 42.0); }
  void finish(const end_facts&, summary& into) override {
    heard.push_back("finish");
    into.faults_struck += 1000;
  }

private:
  run_books& books_;
};

result<std::unique_ptr<run_observer>> make_diary(run_books& books) {
  std::unique_ptr<run_observer> out;
  if (books.options.scenario == watched_scenario) out = std::make_unique<watcher>(books);
  return out;
}

observer_options options_of(std::string scenario) {
  observer_options out;
  out.scenario = std::move(scenario);
  out.identify = [](netem::host_index host) { return host_identity{"home", host, 0}; };
  return out;
}

summary run(const std::string& scenario) {
  heard.clear();
  auto made = run_observers::create(options_of(scenario), nullptr);
  REQUIRE(made.ok());
  run_observers& all = **made;
  all.on_event({netem::event_kind::host_started, 0s, 0s, {0, 0}, {0, 0}, "", 0});
  all.on_host_started(0s, 100, "home-0", 0, 0);
  all.on_observation(1s, 100, 0, "home-0",
                     actors::phase_changed{actors::peer_phase::computing, 0, state(0)});
  all.on_fault(2s, 0, "kill", true, false, {"home-0"});
  all.on_host_killed(2s, 100);
  all.on_host_killed(3s, 100);
  end_facts facts;
  facts.time = 4s;
  summary out;
  CHECK(all.finish(facts, out).ok());
  if (scenario == watched_scenario) CHECK(all.values().get(metric::misbehaved) == 42.0);
  return out;
}

} // namespace

TEST_CASE("an observer that a program adds hears the run and adds to the summary and the metrics") {
  add_observer(make_diary);
  const summary watched = run(watched_scenario);
  CHECK(heard ==
        std::vector<std::string>{"started home-0", "phase of home-0", "killed home-0",
                                 "finish"}); // no event: the observer does not ask for events
  CHECK(watched.faults_struck == 1001);
  const summary other = run("not watched");
  CHECK(heard.empty());
  CHECK(other.faults_struck == 1);
  CHECK(other.event_hash == watched.event_hash);
}
