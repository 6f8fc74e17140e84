// Small swarms for the protocol tests: a scenario written in a few lines, run in virtual time, and
// what every such run has to satisfy.
#pragma once

#include "scenarios/runner/runner.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace shoal::e2e {

/// A scenario of a swarm that finishes an epoch in about a second. Everything can be said
/// otherwise.
struct swarm {
  unsigned peers = 3;
  unsigned epochs = 6;
  std::uint64_t seed = 1;
  std::string kind = "quadratic";
  std::string parameters = "4000"; ///< 16 kB to average
  std::string workload;            ///< further options, ', key: value'
  std::string up = "1Mbit", down = "40Mbit";
  std::string averaging; ///< further options, ', key: value'
  std::string training;
  std::string data;
  std::string stop_time = "10min";
  std::string open;                ///< a further option of these peers, 'key: value'
  std::string more_network;        ///< further keys of the network, ', key: value'
  std::string late;                ///< lines below `peers:`
  std::vector<std::string> faults; ///< flow mappings
  std::string more;                ///< lines at the end

  std::string yaml() const;
};

struct finished_run {
  scenarios::run_outcome outcome;
  std::vector<std::string> errors; ///< the errors of the scenario; empty if there are none
  std::map<actors::peer_id, std::uint64_t> epoch_of; ///< last epoch of each peer
  std::map<actors::peer_id, std::string> state_of;   ///< and state id
  std::uint64_t adopted = 0, stepped = 0, misbehaved = 0;
  std::string first_misbehaviour;

  const scenarios::summary& summary() const { return outcome.summary; }
  /// The errors and the scenario, for a failure's message.
  std::string text(const std::string& yaml) const;
  std::uint64_t reason(const std::string& name) const {
    auto found = summary().rounds.by_reason.find(name);
    return found == summary().rounds.by_reason.end() ? 0 : found->second;
  }
};

/// Loads and runs `yaml`. Errors in it throw, so that a test fails with them.
/// `errors` says: an invariant was violated; fewer than `epochs` epochs were done; a correct peer
/// was taken for one that misbehaves.
finished_run run_yaml(const std::string& yaml, std::uint64_t epochs,
                      scenarios::runner_options options = {});
inline finished_run run_swarm(const swarm& what, scenarios::runner_options options = {}) {
  return run_yaml(what.yaml(), what.epochs, std::move(options));
}

/// Calls run(name) for each attack of a peer that needs no labels, and prints the slowest run
/// beside an honest one. `run` checks the run that it returns.
void under_each_attack(const std::string& swarm, const finished_run& honest,
                       const std::function<finished_run(const std::string&)>& run);

/// The violations of one rule.
scenarios::summary::check_totals rule(const scenarios::summary& from, const std::string& name);

} // namespace shoal::e2e
