#include "actors/data/observations.hpp"
#include "actors/dht/observations.hpp"
#include "actors/training/observations.hpp"
#include "scenarios/observe/run_observers.hpp"
#include "tests/scenarios/observe/helpers.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;
using actors::outcome;
using actors::peer_phase;
using actors::reason;

namespace {

enum class spoiled {
  nothing,
  divided_by_peers,
  lost_sample,
  skipped_index,
  other_order,
  expired_record
};

/// Two peers and a shard over some epochs, as the runner would tell it.
struct swarm {
  std::unique_ptr<run_observers> observers;
  duration now{};
  spoiled how;

  swarm(const run_directory* directory, spoiled what, record_options record = {}) : how(what) {
    observer_options options;
    options.scenario = "two";
    options.seed = 9;
    options.record = record;
    options.peer_machines = {0, 1};
    options.identify = [](netem::host_index host) {
      return host_identity{"home-" + std::to_string(host), host, 0};
    };
    options.bytes_sent = [] { return std::array<std::uint64_t, 4>{1, 2, 3, 4}; };
    auto made = run_observers::create(std::move(options), directory);
    REQUIRE(made.ok());
    observers = std::move(*made);
    for (std::uint32_t i = 0; i < 2; ++i) {
      observers->on_event({netem::event_kind::host_started, now, now, {i, 0}, {i, 0}, "", 0});
      observers->on_host_started(now, 100 + i, "home-" + std::to_string(i),
                                 static_cast<std::uint32_t>(i), 0);
      see(i, actors::phase_changed{peer_phase::computing, 0, state(0)});
    }
  }

  void see(std::uint32_t i, const actors::observation& what) {
    observers->on_observation(now, 100 + i, i, "home-" + std::to_string(i), what);
  }
  void shard(actors::sample_state to, std::uint32_t i, std::uint64_t epoch,
             std::vector<sample_range> ranges) {
    observers->on_observation(
        now, 7, 2, "shard",
        actors::samples_moved{to, 100 + i, epoch, group(epoch), std::move(ranges), 1, 1});
  }
  void message(std::uint32_t from, std::uint32_t to) {
    observers->on_event(
        {netem::event_kind::message, now, now - 1ms, {from, 1}, {to, 1}, "part_chunk", 1000});
  }

  void epoch(std::uint64_t n) {
    const std::uint64_t skipped = how == spoiled::skipped_index && n >= 2 ? 1 : 0;
    const std::uint64_t base = 4 * n + skipped;
    const std::vector<sample_range> ranges[] = {{{base, 3}}, {{base + 3, 1}}};
    const std::vector<float> values[] = {{1, 2}, {5, -2}};
    const bool wrong = how == spoiled::divided_by_peers;
    for (std::uint32_t i = 0; i < 2; ++i) {
      shard(actors::sample_state::leased, i, n, ranges[i]);
      see(i, actors::trained{n, ranges[i], 2.0 * static_cast<double>(count(ranges[i]))});
    }
    now += 100ms;
    for (std::uint32_t i = 0; i < 2; ++i) {
      auto mine = ranges[i];
      if (how == spoiled::lost_sample && i == 0) --mine[0].count;
      see(i, actors::phase_changed{peer_phase::averaging, n, state(n)});
      see(i, contribution(n, i, 2, mine, values[i]));
    }
    if (how == spoiled::other_order)
      message(1, 0), message(0, 1);
    else
      message(0, 1), message(1, 0);
    for (std::uint32_t i = 0; i < 2; ++i)
      see(i, actors::records_given{now.count() + (how == spoiled::expired_record && n == 4 ? 0 : 1),
                                   now.count()});
    now += 400ms;
    const std::uint64_t weight = how == spoiled::lost_sample ? 3 : 4;
    for (std::uint32_t i = 0; i < 2; ++i) {
      std::vector<float> mean = wrong ? std::vector<float>{4, 2} : std::vector<float>{2, 1};
      see(i, ending(n, i, 2, outcome::ok, reason::none, {{0, 2, {0, 1}, weight}}, mean));
      shard(actors::sample_state::committed, i, n, ranges[i]);
      see(i, actors::stepped{n + 1, state(n), state(n + 1), group(n)});
      see(i, actors::phase_changed{peer_phase::computing, n + 1, state(n + 1)});
    }
    now += 500ms;
  }

  summary finish() {
    end_facts facts;
    facts.time = 200s;
    facts.leaks.messages = 20;
    facts.leaks.requests = 5;
    facts.leaks.actors_alive = facts.leaks.actors_expected = 6;
    facts.loss.first = 5.0;
    summary out;
    const auto written = observers->finish(facts, out);
    CAPTURE((written.ok() ? std::string() : written.error()));
    CHECK(written.ok());
    return out;
  }
};

summary run(spoiled how, const run_directory* directory = nullptr, record_options record = {}) {
  swarm s(directory, how, record);
  for (std::uint64_t n = 0; n < 10; ++n) s.epoch(n);
  s.observers->on_held_out_loss(s.now, 2.5);
  return s.finish();
}

const summary::check_totals& check(const summary& s, std::string_view name) {
  for (const auto& [known, totals] : s.invariants)
    if (known == name) return totals;
  FAIL("no such invariant");
  return s.invariants.front().second;
}

} // namespace

TEST_CASE("a correct run checks every invariant and violates none") {
  const summary s = run(spoiled::nothing);
  REQUIRE(s.invariants.size() == rule_names.size());
  for (const auto& [name, totals] : s.invariants) {
    CAPTURE(name);
    CAPTURE(totals.first_violation);
    CHECK(totals.checked > 0);
    CHECK(totals.violated == 0);
  }
  CHECK(s.scenario == "two");
  CHECK(s.epochs == 10);
  CHECK(s.samples == 40);
  CHECK(s.rounds.ok == 10);
  CHECK(s.peers == summary::peer_totals{2, 0, 2});
  CHECK(s.bytes_sent == summary::sent_bytes{1, 2, 3, 4});
  CHECK(s.loss.first == 5.0);
  CHECK(s.loss.final == 2.5);
  CHECK(s.virtual_seconds == 200.0);
  REQUIRE(s.event_hash.has_value());
  CHECK(s.event_hash == run(spoiled::nothing).event_hash);
}

TEST_CASE("a wrong denominator, a lost sample, a skipped index and another order are each caught") {
  const summary wrong = run(spoiled::divided_by_peers);
  CHECK(check(wrong, "mass_conserved").violated == 10);
  const summary lost = run(spoiled::lost_sample);
  CHECK(check(lost, "samples_counted").violated >= 10);
  const summary skipped = run(spoiled::skipped_index);
  CHECK(check(skipped, "samples_counted").violated == 1);
  const summary expired = run(spoiled::expired_record);
  CHECK(check(expired, "records_live").violated == 2);
  CHECK(check(expired, "records_live").first_violation.find("gives a record that expired 0") !=
        std::string::npos);
  CHECK(run(spoiled::other_order).event_hash != run(spoiled::nothing).event_hash);
}

TEST_CASE("days are counted of runs that are longer than one") {
  swarm s(nullptr, spoiled::nothing);
  s.epoch(0);
  s.now = 18h;
  s.observers->on_host_killed(s.now, 101);
  s.now = 36h;
  s.observers->on_host_started(s.now, 102, "home-1", 1, 1);
  end_facts facts;
  facts.time = 60h;
  summary out;
  REQUIRE(s.observers->finish(facts, out).ok());
  REQUIRE(out.days.size() == 3);
  CHECK(out.days[0] == summary::day_totals{1.75, 1, 4, 10});
  CHECK(out.days[1] == summary::day_totals{1.5, 0, 0, 0});
  CHECK(out.days[2] == summary::day_totals{2, 0, 0, 0}); // half a day
  CHECK(run(spoiled::nothing).days.empty());
}

TEST_CASE("bypasses, open requests and leaks are violations that say how many") {
  swarm s(nullptr, spoiled::nothing);
  end_facts facts;
  facts.leaks = {.messages = 10,
                 .bypassed = 1,
                 .requests = 5,
                 .requests_open = 2,
                 .actors_alive = 7,
                 .actors_expected = 6,
                 .flows_of_dead_hosts = 1,
                 .actors_of_dead_hosts = 0};
  facts.deterministic = false;
  summary out;
  REQUIRE(s.observers->finish(facts, out).ok());
  CHECK(check(out, "no_bypass").violated == 1);
  CHECK(check(out, "requests_end").violated == 2);
  CHECK(check(out, "no_leaks").violated == 2);
  CHECK(check(out, "no_leaks").first_violation.find("7 actors are alive, 6 are expected") !=
        std::string::npos);
  CHECK(!out.event_hash.has_value());
}

TEST_CASE("peers that are killed or go are counted once, and their rounds do not wait for them") {
  swarm s(nullptr, spoiled::nothing);
  s.epoch(0);
  for (std::uint32_t i = 0; i < 2; ++i) {
    s.shard(actors::sample_state::leased, i, 1, {{4 + 2 * i, 2}});
    s.see(i, actors::trained{1, {{4 + 2 * i, 2}}, 1});
    s.see(i, contribution(1, i, 2, {{4 + 2 * i, 2}}, {1}));
  }
  s.observers->on_host_killed(s.now, 101);
  s.see(0, ending(1, 0, 2, outcome::partial, reason::sender_lost, {{0, 1, {0}, 2}}, {1}));
  s.see(0, actors::phase_changed{peer_phase::gone, 1, state(1)});
  s.observers->on_host_killed(s.now, 100);
  const run_progress p = s.observers->progress();
  CHECK(p.peers_left == 2);
  CHECK(p.peers_alive == 0);
  CHECK(p.peers_in_sync == 0);
  CHECK(p.samples == 6);
  CHECK(s.observers->rounds().of(outcome::partial) == 1);
  CHECK(s.observers->rounds().by_reason.at("sender_lost") == 1);
}

TEST_CASE("a run's files are written: metrics at their interval, events, an exposition") {
  scratch temp;
  auto directory = run_directory::create(temp.path / "run", false);
  REQUIRE(directory.ok());
  record_options record;
  record.events = event_detail::all;
  record.metrics_interval = 1s;
  run(spoiled::nothing, &*directory, record);

  const std::string csv = read_file(directory->file("metrics.csv")).value();
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 201 + 1); // the header, 0 .. 200 s, the end
  CHECK(csv.starts_with(metrics::csv_header()));
  CHECK(csv.find("\n1.000000000,1,4,4,2,,2,2,2,0,1,0,0,0,1,2,3,4,4,0,0\n") != std::string::npos);
  CHECK(read_file(directory->file("metrics.prom"))
            .value()
            .find("shoal_rounds_total{outcome=\"ok\"} 10") != std::string::npos);

  auto reader = event_log_reader::open(directory->file("events.jsonl.zst"));
  REQUIRE(reader.ok());
  std::string line;
  std::size_t messages = 0, ends = 0;
  for (;;) {
    auto more = reader->next(line);
    REQUIRE(more.ok());
    if (!*more) break;
    messages += line.find("\"what\":\"message\"") != std::string::npos ? 1 : 0;
    ends += line.find("\"what\":\"round_ended\"") != std::string::npos ? 1 : 0;
  }
  CHECK(messages == 20);
  CHECK(ends == 20);
}

TEST_CASE("the recorded outputs do not change the hash of history") {
  scratch temp;
  auto directory = run_directory::create(temp.path / "run", false);
  REQUIRE(directory.ok());
  record_options record;
  record.events = event_detail::all;
  record.peers = 1;
  CHECK(run(spoiled::nothing, &*directory, record).event_hash == run(spoiled::nothing).event_hash);
}

TEST_CASE("a host alone judges what it can, and leaves what it knew when its process is killed") {
  scratch temp;
  auto directory = run_directory::create(temp.path / "run", false);
  REQUIRE(directory.ok());
  observer_options options;
  options.scenario = "two";
  options.record.events = event_detail::none;
  options.record.metrics_interval = 1s;
  options.peer_machines = {0, 1, 2};
  options.wire = [] { return wire_counts{.links_open = 5}; };
  options = local_view_of(std::move(options), 1);
  CHECK(options.peer_machines == std::vector<std::uint32_t>{1});
  auto observers = run_observers::create(std::move(options), &*directory);
  REQUIRE(observers.ok());
  auto& o = **observers;
  o.on_host_started(0s, 101, "home-1", 1, 3);
  const auto see = [&](duration time, const actors::observation& what) {
    o.on_observation(time, 101, 1, "home-1", what);
  };
  see(0s, actors::phase_changed{peer_phase::computing, 4, state(4)});
  see(1s, actors::trained{4, {{7, 2}}, 6});
  see(2s, contribution(4, 1, 3, {{7, 2}}, {1, 2}));
  see(3s, ending(4, 1, 3, outcome::ok, reason::none, {{0, 2, {0, 1, 2}, 9}}, {1, 1}));
  see(3s, actors::stepped{5, state(4), state(5), group(4)});
  see(3s, actors::adopted{9, state(77), 10, false}); // a state that only others had
  o.on_time(4500ms);

  CHECK(o.rounds().of(outcome::ok) == 1);
  for (const auto rule : {invariant_rule::same_bits, invariant_rule::denominator,
                          invariant_rule::mass_conserved, invariant_rule::staleness})
    CHECK(o.checks().of(rule).checked == 0);
  CHECK(o.checks().of(invariant_rule::samples_counted).checked > 0);
  CHECK(o.checks().of(invariant_rule::epoch_monotonic).checked > 0);
  CHECK(o.checks().of(invariant_rule::state_lineage).checked > 0);
  for (const invariant& rule : o.checks().all())
    CHECK_MESSAGE(rule.violated == 0, rule.first_violation);
  CHECK(o.values().get(metric::links_open) == 5.0);

  // As the file system has it now, without an end.
  const std::string rows = read_file(directory->file("metrics.csv.partial")).value();
  CHECK(rows.find("\n4.000000000,9,2,") != std::string::npos);
  auto log = event_log_reader::open(directory->file("events.jsonl.zst.partial"));
  std::string line, all;
  for (auto more = log->next(line); more.ok() && *more; more = log->next(line)) all += line + "\n";
  CHECK(all.find("\"contributed\"") != std::string::npos);
  CHECK(all.find("\"round_ended\"") != std::string::npos);
  CHECK(read_file(directory->file("epochs.csv.partial")).value().find("\n4,0.000000000,2,3,\n") !=
        std::string::npos);

  // Faults of this host alone are seen.
  see(5s, contribution(9, 1, 3, {{7, 2}}, {1, 2}));
  CHECK(o.checks().of(invariant_rule::samples_counted).violated >
        0); // the peer did not compute these again
  see(6s, actors::phase_changed{peer_phase::computing, 3, state(3)});
  CHECK(o.checks().of(invariant_rule::epoch_monotonic).violated > 0);
}

TEST_CASE("peers.csv has the machine and the incarnation of a host, whatever its id is made of") {
  scratch temp;
  auto directory = run_directory::create(temp.path / "run", false);
  REQUIRE(directory.ok());
  observer_options options;
  options.record.events = event_detail::none;
  options.record.metrics_interval = 1s;
  options.identify = [](netem::host_index host) { return host_identity{"home-1", host, 0}; };
  auto observers = run_observers::create(std::move(options), &*directory);
  REQUIRE(observers.ok());
  // A process of a cluster makes its id from its name.
  const actors::peer_id id = (std::uint64_t{0xfeedbeef} << 32) | 3;
  (*observers)->on_host_started(0s, id, "home-1", 7, 3);
  summary into;
  REQUIRE((*observers)->finish({}, into).ok());
  const auto rows = read_file(directory->file("peers.csv"));
  REQUIRE(rows.ok());
  CHECK(rows->find(std::to_string(id) + ",home-1,7,3,0.000000000,") != std::string::npos);
}
