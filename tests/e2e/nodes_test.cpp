// The views of a swarm's single hosts. Each view, judged without the others, violates no invariant,
// and all together give the figures of the whole run.
#include "actors/averaging/observations.hpp"
#include "scenarios/compare/run_comparison.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/observe/run_observers.hpp"
#include "scenarios/page/cluster_reader.hpp"
#include "scenarios/page/run_reader.hpp"
#include "scenarios/schema/load.hpp"
#include "tests/e2e/support/program.hpp"
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <set>

using namespace shoal;
using namespace shoal::e2e;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t first_utc_ns = 1'700'000'000'000'000'000; // UTC at virtual time 0

/// One life of one host, as its process would see it.
struct node {
  std::string name;
  fs::path folder;
  duration started{};
  std::unique_ptr<scenarios::run_directory> directory; // the observers keep its address
  std::unique_ptr<scenarios::run_observers> observers;
};

struct watched_swarm {
  finished_run whole;
  scenarios::run_record predicted; ///< from the directory of the whole run
  scenarios::run_record actual;    ///< from those of its hosts
  std::size_t lives = 0, killed = 0;
};

actors::kept_observation as_seen_by(const node& by, const actors::observation& what) {
  const auto* ended = actors::get_if<actors::round_ended>(&what);
  if (ended == nullptr || ended->started_ns == 0) return actors::kept_observation(what);
  auto seen = *ended;
  seen.started_ns -= static_cast<std::uint64_t>(by.started.count());
  return actors::kept_observation(seen);
}

/// The page of the hosts together: the rounds of the whole run, each with its members, and
/// everybody's contributions.
void check_page(const fs::path& whole_folder, const fs::path& nodes_folder,
                const watched_swarm& what) {
  std::vector<scenarios::node_directory> directories;
  for (const auto& entry : fs::directory_iterator(nodes_folder))
    directories.push_back({entry.path(), false});
  std::sort(directories.begin(), directories.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  const auto together = scenarios::read_cluster_view(nodes_folder, directories);
  REQUIRE_MESSAGE(together.ok(), together.error());
  const auto alone = scenarios::read_run_view(whole_folder);
  REQUIRE_MESSAGE(alone.ok(), alone.error());
  const auto page = nlohmann::json::parse((*together)->document()),
             whole = nlohmann::json::parse((*alone)->document());
  CHECK(page["nodes"].size() == what.lives);
  CHECK(page["rounds"]["by_outcome"] == whole["rounds"]["by_outcome"]);
  CHECK(page["run"]["state"] == (what.killed > 0 ? "unfinished" : "ended"));
  CHECK(page["run"]["node"] == "");
  const auto& totals = what.whole.summary().rounds;
  CHECK(page["series"]["rounds_ok"].back() == totals.ok);
  CHECK(page["series"]["epoch"].back() == what.whole.summary().epochs);
  const auto members = [](const nlohmann::json& of) {
    std::map<std::string, std::set<std::string>> out;
    for (const auto& round : of["rounds"]["kept"])
      for (const auto& end : round["ends"]) out[round["group"]].insert(end[0].get<std::string>());
    return out;
  };
  // The last report of a killed host may be lost.
  if (what.killed > 0) return;
  CHECK(members(page) == members(whole));
  const auto samples = [](const nlohmann::json& of) {
    std::map<std::string, std::uint64_t> out;
    for (const auto& host : of["participants"]["hosts"]) out[host["name"]] = host["samples"];
    return out;
  };
  CHECK(samples(page) == samples(whole));
}

/// Runs `what` and lets each life of each host watch itself. Checks that none of them finds
/// anything wrong.
watched_swarm watch(swarm what, const fs::path& folder) {
  auto yaml = what.yaml();
  const std::string nothing = "record: {events: none}";
  yaml.replace(yaml.find(nothing), nothing.size(), "record: {events: rounds, held_out_every: 2}");
  const auto scenario = *scenarios::load_text(yaml, "swarm.yaml").value;

  watched_swarm out;
  std::map<actors::peer_id, node> nodes;
  const auto start = [&](const actors::host& host, duration now) -> node& {
    const auto machine = static_cast<std::uint32_t>((host.id() >> 16) - 1);
    const bool is_peer = machine >= 1 && !host.name().starts_with(scenarios::shard_prefix);
    scenarios::observer_options options;
    options.scenario = scenario.name;
    options.seed = scenario.seed;
    options.world = "cluster";
    options.record = scenario.record;
    options.record.events =
        scenarios::event_detail::none; // a local view logs its rounds all the same
    options.bytes_sent = [] { return std::array<std::uint64_t, 4>{1, 20, 300, 4000}; };
    options.invariants.takeovers = scenario.data.replicas > 1;
    options.invariants.weights_are_samples = scenarios::traits_of(scenario).weights_are_samples;
    options.invariants.computes_meanwhile = scenarios::traits_of(scenario).computes_meanwhile;
    options = scenarios::local_view_of(std::move(options),
                                       is_peer ? std::optional(machine) : std::nullopt);
    const auto path = folder / fmt::format("{}.{}", host.name(), host.id() & 0xffff);
    auto created = scenarios::run_directory::create(path, false);
    REQUIRE(created.ok());
    auto directory = std::make_unique<scenarios::run_directory>(std::move(*created));
    scenarios::provenance made_by;
    made_by.node = std::string(host.name());
    made_by.started_utc_ns = first_utc_ns + now.count();
    REQUIRE(directory->write("run.yaml", to_yaml(scenario) + to_yaml(made_by)).ok());
    auto observers = scenarios::run_observers::create(std::move(options), &*directory);
    REQUIRE(observers.ok());
    auto& made = nodes
                     .try_emplace(host.id(), node{std::string(host.name()), path, now,
                                                  std::move(directory), std::move(*observers)})
                     .first->second;
    if (is_peer)
      made.observers->on_host_started({}, host.id(), host.name(), machine,
                                      static_cast<std::uint32_t>(host.id() & 0xffff));
    return made;
  };
  scenarios::runner_options options;
  options.out = (folder / "whole").string();
  duration last{};
  options.on_observation = [&](const actors::host& host, const actors::observation& seen) {
    last = duration(host.utc_ns() - first_utc_ns);
    const auto found = nodes.find(host.id());
    auto& at = found == nodes.end() ? start(host, last) : found->second;
    at.observers->on_observation(last - at.started, host.id(),
                                 static_cast<std::uint32_t>((host.id() >> 16) - 1), host.name(),
                                 as_seen_by(at, seen));
  };
  out.whole = run_yaml(yaml, what.epochs, std::move(options));
  INFO(out.whole.text(yaml));
  CHECK(out.whole.errors.empty());
  auto predicted = scenarios::read_run_record(folder / "whole");
  REQUIRE_MESSAGE(predicted.ok(), predicted.error());
  out.predicted = std::move(*predicted);

  // A killed host wrote no more, and ended nothing.
  std::set<actors::peer_id> killed;
  std::istringstream lives(slurp(folder / "whole/peers.csv"));
  for (std::string line; std::getline(lives, line);)
    if (line.ends_with("_killed")) killed.insert(std::stoull(line));
  const auto nodes_folder = folder / "nodes";
  for (auto& [id, one] : nodes) {
    INFO(one.name << " " << id);
    const auto to = nodes_folder / one.folder.filename();
    if (killed.contains(id)) {
      fs::create_directories(to);
      fs::copy(one.folder, to, fs::copy_options::recursive);
      CHECK(fs::exists(to / "events.jsonl.zst.partial"));
      for (const auto& rule : one.observers->checks().all())
        CHECK_MESSAGE(rule.violated == 0, rule.first_violation);
      ++out.killed;
    } else {
      scenarios::summary totals;
      scenarios::end_facts facts;
      facts.time = last - one.started;
      facts.deterministic = false;
      facts.loss.final = out.whole.summary().loss.final;
      REQUIRE(one.observers->finish(facts, totals).ok());
      for (const auto& [name, rule] : totals.invariants) {
        CHECK_MESSAGE(rule.violated == 0, name << ": " << rule.first_violation);
        const bool of_several = name == "same_bits" || name == "denominator" ||
                                name == "mass_conserved" || name == "staleness";
        if (of_several) CHECK_MESSAGE(rule.checked == 0, name);
      }
      if (totals.samples > 0) CHECK(rule(totals, "samples_counted").checked > 0);
      CHECK(totals.peers.joined <= 1);
      REQUIRE(one.directory->write("summary.json", to_json(totals)).ok());
      one.observers.reset();
      fs::create_directories(nodes_folder);
      fs::rename(one.folder, to);
    }
    ++out.lives;
  }
  // Held against the run that they are the hosts of, nothing that time or samples are measured by
  // is off.
  const std::vector<std::string> exact{"0.0000001%", "bytes=off"};
  const auto compared =
      scenarios::compare_runs(folder / "whole", nodes_folder, *scenarios::tolerances::parse(exact));
  REQUIRE_MESSAGE(compared.ok(), compared.error());
  CHECK_MESSAGE(compared->within(), to_text(*compared));
  auto actual = scenarios::read_run_record(nodes_folder);
  REQUIRE_MESSAGE(actual.ok(), actual.error());
  out.actual = std::move(*actual);
  check_page(folder / "whole", nodes_folder, out);
  return out;
}

/// The hosts' files give the same as the observers of the whole swarm.
void check_same(const watched_swarm& what) {
  const auto& predicted = what.predicted;
  const auto& actual = what.actual;
  const auto& whole = what.whole.summary();
  CHECK(actual.directories == what.lives);
  CHECK(actual.epochs == whole.epochs);
  CHECK(actual.samples == whole.samples);
  CHECK(actual.rounds.ok == whole.rounds.ok);
  CHECK(actual.rounds.partial == whole.rounds.partial);
  CHECK(actual.rounds.split == whole.rounds.split);
  CHECK(actual.rounds.failed == whole.rounds.failed);
  CHECK(actual.rounds.by_reason == whole.rounds.by_reason);
  REQUIRE(actual.rounds.mean_seconds);
  CHECK(*actual.rounds.mean_seconds == doctest::Approx(*whole.rounds.mean_seconds).epsilon(1e-9));
  CHECK(actual.peers.joined == whole.peers.joined);
  CHECK(actual.peers.left == whole.peers.left);
  CHECK(actual.peers.alive == whole.peers.alive);
  CHECK(actual.final_loss.value_or(0) == doctest::Approx(whole.loss.final.value_or(0)));
  CHECK(actual.bytes.control == 4000 * what.lives);

  const auto seconds = actual.round_seconds(), expected = predicted.round_seconds();
  REQUIRE(seconds.size() == expected.size());
  for (std::size_t i = 0; i < seconds.size(); ++i)
    CHECK(seconds[i] == doctest::Approx(expected[i]).epsilon(1e-9));
  REQUIRE(actual.samples_per_second());
  CHECK(*actual.samples_per_second() ==
        doctest::Approx(*predicted.samples_per_second()).epsilon(1e-9));

  std::size_t compared = 0;
  for (const auto& [epoch, of] : predicted.by_epoch) {
    const auto found = actual.by_epoch.find(epoch);
    if (!of.reached_seconds) continue;
    INFO("epoch " << epoch);
    REQUIRE(found != actual.by_epoch.end());
    // The last epoch of a killed host is lost with it. If the host was the first one there, the
    // second one counts.
    CHECK(found->second.reached_seconds.value() ==
          doctest::Approx(*of.reached_seconds).epsilon(what.killed > 0 ? 0.01 : 1e-9));
    CHECK(found->second.reached_seconds.value() > *of.reached_seconds - 1e-6);
    if (what.killed > 0) continue;
    CHECK(found->second.samples == of.samples);
    if (of.loss_train)
      CHECK(found->second.loss_train.value() == doctest::Approx(*of.loss_train).epsilon(1e-9));
    ++compared;
  }
  CHECK((what.killed > 0 || compared >= whole.epochs));
}

} // namespace

TEST_CASE("nodes: what each host sees, put together, is the run") {
  struct variant {
    const char* name;
    swarm what;
  };
  std::vector<variant> variants;
  variants.push_back({"calm", {}});
  variants.back().what.peers = 4;
  variants.push_back({"timing", {}});
  variants.back().what.kind = "timing";
  variants.push_back({"overlap", {}});
  variants.back().what.training = ", overlap: averaging";
  variants.push_back({"powersgd", {}});
  variants.back().what.averaging = ", power_sgd_rank: 2";
  variants.back().what.parameters = "4096";
  variants.back().what.workload = ", rows: 64";
  variants.push_back({"auxiliary", {}});
  variants.back().what.late =
      "  aux: {count: 1, up: 4Mbit, down: 40Mbit, device: fast, role: auxiliary}\n";
  variants.push_back({"moshpit", {}});
  variants.back().what.peers = 4;
  variants.back().what.training = ", method: moshpit, local_steps: 4";
  variants.back().what.averaging = ", grid: 2x2";
  for (auto& [name, what] : variants) {
    INFO(name);
    scratch_folder here;
    const auto out = watch(what, here.path());
    check_same(out);
    CHECK(out.actual.notes.empty());
    CHECK(out.actual.nodes == out.lives);
  }
}

TEST_CASE("nodes: hosts that are killed and come back leave what they knew, and the rounds are "
          "judged as they were") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    const char* const probes[] = {"matchmaking.joined", "all_reduce.half_sent",
                                  "all_reduce.half_replied", "all_reduce.voted"};
    const auto* probe = probes[seed % 4];
    INFO(probe << ", seed " << seed);
    scratch_folder here;
    swarm what;
    what.seed = seed;
    what.peers = 5;
    what.epochs = 12;
    what.faults = {
        fmt::format("{{restart: process, select: p-2, on: {}, nth: 3, downtime: 3s}}", probe),
        "{kill: machine, select: p-3, at: 6s}"};
    const auto out = watch(what, here.path());
    CHECK(out.killed >= 1);
    CHECK(out.actual.notes.size() == out.killed);
    check_same(out);
  }
}

TEST_CASE("nodes: a host with a shard judges its ledger alone, also one that takes over") {
  scratch_folder here;
  swarm what;
  what.peers = 4;
  what.epochs = 16;
  what.data = ", lease_time: 10s, replicas: 2";
  what.faults = {"{kill: process, select: shard-0, at: 5s}"};
  check_same(watch(what, here.path()));
}
