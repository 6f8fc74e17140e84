// Swarms in which some members send false values, and the others find them out: the whole protocol
// in virtual time.
#include "actors/averaging/guard_observations.hpp"
#include "actors/averaging/observations.hpp"
#include "kernels/base/stats.hpp"
#include "tests/e2e/support/swarm.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::e2e;
using scenarios::runner_options;
using scenarios::summary;

namespace {

/// Honest peers, and peers that attack.
swarm attacked(unsigned honest, unsigned attackers, const std::string& conduct,
               const std::string& security) {
  swarm out;
  out.peers = honest;
  out.epochs = 60;
  out.up = "20Mbit";
  if (attackers > 0)
    out.late = fmt::format("  x: {{count: {}, up: 20Mbit, down: 40Mbit, device: fast, "
                           "start_spacing: 10ms, conduct: {}}}\n",
                           attackers, conduct);
  out.averaging = ", min_group_size: 3";
  out.more = fmt::format("security: {{{}}}\n", security);
  return out;
}

/// One or two such members stop no training, with or without a guard. Each run takes less than 2.5
/// times as long as the run without them.
void with_one_and_two(const std::string& conduct) {
  for (const char* security : {"kind: none", "kind: btard, validators: 1"}) {
    const auto honest = run_swarm(attacked(6, 0, "", security)).summary().virtual_seconds;
    for (const unsigned attackers : {1u, 2u}) {
      const auto run = run_swarm(attacked(6, attackers, conduct, security));
      CAPTURE(attackers);
      CAPTURE(security);
      CHECK(run.summary().epochs >= 60);
      CHECK(rule(run.summary(), "no_honest_accused").violated == 0);
      CHECK(run.summary().virtual_seconds < 2.5 * honest);
      MESSAGE(attackers, " attackers, ", std::string(security), ": ", run.summary().virtual_seconds,
              " s, and ", honest, " s without them");
    }
  }
}

/// One run in which an attacker attacks in each round, as seen from the outside.
struct watched_attack {
  std::uint64_t attacks = 0; ///< rounds in which an attacker's contribution counted
  std::uint64_t found = 0;   ///< rounds whose audits found that
  double expected = 0;       ///< the sum over these rounds of the probability to be found
  double variance = 0;
  std::vector<double> first_found; ///< by attacker: its attacks until it was found
  summary outcome;
};

/// Counts until all attackers are found, and ends the run then.
watched_attack watch(const swarm& what, unsigned attackers, unsigned validators) {
  struct round {
    std::map<std::string, std::uint64_t> weights; // by host
    std::set<std::string> found;
    bool ended_well = false; // else nobody is drawn
  };
  std::map<actors::group_id, round> rounds;
  std::vector<actors::group_id> order;
  std::map<std::pair<actors::group_id, std::uint32_t>, std::string> who;
  std::set<std::string> found;
  runner_options options;
  options.on_observation = [&](const actors::host& from, const actors::observation& seen) {
    if (const auto* x = actors::get_if<actors::contributed>(&seen)) {
      if (rounds.try_emplace(x->group).second) order.push_back(x->group);
      rounds[x->group].weights[std::string(from.name())] = x->weight;
      who[{x->group, x->member}] = from.name();
    } else if (const auto* x = actors::get_if<actors::round_ended>(&seen)) {
      if (x->outcome == actors::outcome::ok || x->outcome == actors::outcome::partial)
        rounds[x->group].ended_well = true;
    } else if (const auto* x = actors::get_if<actors::audited>(&seen); x != nullptr && !x->right) {
      const auto& name = who[{x->group, x->target}];
      rounds[x->group].found.insert(name);
      found.insert(name);
    }
  };
  options.interrupted = [&] { return found.size() >= attackers; };
  watched_attack out;
  out.outcome = run_swarm(what, std::move(options)).summary();
  std::map<std::string, std::uint64_t> attacks;
  std::set<std::string> gone;
  for (const auto& group : order) {
    const auto& one = rounds[group];
    if (!one.ended_well) continue;
    double total = 0, honest = 0;
    for (const auto& [name, weight] : one.weights) {
      total += static_cast<double>(weight);
      honest += name.starts_with("x-") ? 0 : 1;
    }
    for (const auto& [name, weight] : one.weights) {
      if (!name.starts_with("x-") || weight == 0 || gone.contains(name)) continue;
      ++out.attacks;
      ++attacks[name];
      const double p = std::min(1.0, validators * static_cast<double>(weight) / total) * honest /
                       static_cast<double>(one.weights.size());
      out.expected += p;
      out.variance += p * (1 - p);
      if (!one.found.contains(name)) continue;
      ++out.found;
      gone.insert(name);
      out.first_found.push_back(static_cast<double>(attacks[name]));
    }
  }
  return out;
}

} // namespace

TEST_CASE("byzantine: honest members audit each other and nobody is accused or banned") {
  const auto what = attacked(6, 0, "", "kind: btard, validators: 2");
  const auto run = run_swarm(what);
  INFO(run.text(what.yaml()));
  CHECK(run.errors.empty());
  REQUIRE(run.summary().security);
  const auto& s = *run.summary().security;
  CHECK(s.attackers == 0);
  CHECK(s.honest_banned == 0);
  CHECK(s.wrong == 0);
  CHECK(s.accusations == 0);
  CHECK(s.verdicts == 0);
  // Two validators of six draw themselves in a sixth of their audits.
  CHECK(s.audits >= 60);
  CHECK(s.passed >= s.audits - 8); // the last ones may be under way
}

TEST_CASE("byzantine: attackers are banned and the rest goes on without them") {
  const auto what = attacked(6, 2, "{kind: flipped_signs, strength: 10}",
                             "kind: btard, validators: 2, radius: 1");
  const auto run = run_swarm(what);
  INFO(run.text(what.yaml()));
  REQUIRE(run.summary().security);
  const auto& s = *run.summary().security;
  CHECK(s.attackers == 2);
  CHECK(s.attackers_banned == 2);
  CHECK(s.honest_banned == 0);
  CHECK(s.wrong >= 2);
  CHECK(rule(run.summary(), "no_honest_accused").violated == 0);
  CHECK(rule(run.summary(), "state_lineage").violated == 0);
  CHECK(run.summary().epochs == 60);
}

TEST_CASE("byzantine: members that crash or come late are not banned") {
  auto what = attacked(7, 1, "{kind: flipped_signs, strength: 10}", "kind: btard, validators: 2");
  what.late += "  late: {count: 2, up: 20Mbit, down: 40Mbit, device: fast, start: 6s}\n";
  what.faults = {"{kill: process, select: p-0, on: all_reduce.half_sent, nth: 9}",
                 "{kill: machine, select: p-1, at: 9s}",
                 "{restart: process, select: p-2, at: 12s, downtime: 3s}",
                 "{partition: selected, select: p-3, at: 15s, duration: 6s}"};
  const auto run = run_swarm(what);
  INFO(run.text(what.yaml()));
  REQUIRE(run.summary().security);
  CHECK(run.summary().security->honest_banned == 0);
  CHECK(rule(run.summary(), "no_honest_accused").violated == 0);
  CHECK(run.summary().epochs == 60);
}

TEST_CASE("byzantine: a newcomer gives nothing before it was in ten rounds") {
  auto what = attacked(5, 0, "", "kind: btard, probation: 10");
  what.late = "  late: {count: 1, up: 20Mbit, down: 40Mbit, device: fast, start: 20s}\n";
  std::vector<std::uint64_t> weights; // the newcomer's, round by round
  runner_options options;
  options.on_observation = [&](const actors::host& from, const actors::observation& seen) {
    if (const auto* x = actors::get_if<actors::contributed>(&seen); x && from.name() == "late-0")
      weights.push_back(x->weight);
  };
  const auto run = run_swarm(what, std::move(options));
  INFO(run.text(what.yaml()));
  CHECK(run.errors.empty());
  REQUIRE(weights.size() > 15);
  for (std::size_t i = 0; i < 10; ++i) CHECK(weights[i] == 0);
  CHECK(std::any_of(weights.begin(), weights.end(), [](auto weight) { return weight > 0; }));
}

TEST_CASE("byzantine: an idle validator sits out and keeps its key") {
  const auto what = attacked(6, 1, "idle_validator", "kind: btard, validators: 3, duty_time: 5s");
  std::size_t rounds = 0, with_idler = 0;
  std::set<actors::group_id> known;
  runner_options options;
  options.on_observation = [&](const actors::host& from, const actors::observation& seen) {
    if (const auto* x = actors::get_if<actors::contributed>(&seen)) {
      rounds += known.insert(x->group).second ? 1 : 0;
      with_idler += from.name() == "x-0" ? 1 : 0;
    }
  };
  const auto run = run_swarm(what, std::move(options));
  INFO(run.text(what.yaml()));
  REQUIRE(run.summary().security);
  CHECK(run.summary().security->attackers_banned == 0);
  CHECK(run.summary().security->honest_banned == 0);
  CHECK(run.summary().security->missed_duties > 0);
  CHECK(with_idler + 10 <= rounds);
  CHECK(run.summary().epochs == 60);
}

TEST_CASE("byzantine: the real protocol bans as often as the closed form says") {
  struct plan {
    unsigned honest, attackers, validators;
    std::size_t runs;
  };
  for (const auto& [honest, attackers, validators, runs] :
       {plan{7, 1, 1, tries(20, 2000)}, plan{5, 3, 1, tries(5, 500)},
        plan{6, 2, 2, tries(5, 500)}}) {
    double found = 0, expected = 0, variance = 0, attacks = 0;
    std::vector<double> until;
    for (std::size_t run = 0; run < runs; ++run) {
      auto what = attacked(honest, attackers, "{kind: flipped_signs}",
                           fmt::format("kind: btard, validators: {}", validators));
      what.kind = "timing";
      what.epochs = 120;
      what.seed = 1000 + run;
      const auto one = watch(what, attackers, validators);
      found += static_cast<double>(one.found);
      expected += one.expected;
      variance += one.variance;
      attacks += static_cast<double>(one.attacks);
      until.insert(until.end(), one.first_found.begin(), one.first_found.end());
      REQUIRE(one.outcome.security);
      CHECK(one.outcome.security->honest_banned == 0);
    }
    MESSAGE(honest, " honest, ", attackers, " attackers, ", validators, " validators, ", runs,
            " runs: ", found, " found in ", attacks, " attacks, expected ", expected, " +- ",
            std::sqrt(variance), "; on average after ", mean(until));
    CHECK(until.size() == runs * attackers);
    CHECK(std::abs(found - expected) <= 3 * std::sqrt(variance));
  }
}

TEST_CASE("byzantine: a member that keeps its secret back stops no training, and no honest member "
          "misses an audit because the draw is late") {
  // The draw waits for the secret for a quarter of duty_time, which is several epochs.
  const auto run = run_swarm(
      attacked(5, 1, "{kind: withheld_secret}", "kind: btard, validators: 2, duty_time: 50s"));
  CHECK(rule(run.summary(), "no_honest_accused").violated == 0);
  CHECK(run.summary().epochs >= 60);
}

TEST_CASE("byzantine: no attack of one member stops training") {
  struct method {
    std::string name, training, averaging;
  };
  // A round of PowerSGD is two rounds. The states of the methods after it have no chain.
  const std::vector<method> methods = {
      {"synchronous", "", ", min_group_size: 3"},
      {"overlap", ", overlap: averaging", ", min_group_size: 3"},
      {"delayed update", ", overlap: update", ", min_group_size: 3"},
      {"PowerSGD", "", ", min_group_size: 3, power_sgd_rank: 2"},
      {"DiLoCo", ", method: diloco, local_steps: 8", ", min_group_size: 3"},
      {"local updates", ", method: local_updates", ", min_group_size: 3"},
      {"Moshpit", ", method: moshpit", ", grid: 3x3"},
  };
  for (std::size_t i = 0; i < tries(2, methods.size()); ++i) {
    const auto& each = methods[i];
    CAPTURE(each.name);
    const auto run_with = [&](unsigned attackers, const std::string& conduct) {
      auto what = attacked(6, attackers, conduct, "kind: none");
      what.training = each.training;
      what.averaging = each.averaging;
      what.workload = ", rows: 40";
      return run_swarm(what);
    };
    under_each_attack(each.name, run_with(0, ""), [&](const std::string& attack) {
      auto run = run_with(1, fmt::format("{{kind: {}}}", attack));
      CHECK(run.summary().epochs >= 60);
      CHECK(rule(run.summary(), "no_honest_accused").violated == 0);
      return run;
    });
  }
}

TEST_CASE("byzantine: leaders that begin no group do not stop training") {
  // Each peer avoids them after the first time. Without that, two attackers make it 7.5 times.
  with_one_and_two("{kind: stalling_leader}");
}

TEST_CASE("byzantine: reducers that tell each member other means do not stop training") {
  // Each member avoids such a reducer after its first round. Before, the swarm stood still.
  with_one_and_two("{kind: equivocation, messages: [reduced_chunk]}");
}
