// Learning under attack: attacks against aggregators, without a network. In each step every member
// computes a gradient of its own samples, and the attackers change theirs. An aggregator makes one
// gradient of all, and the optimizer takes a step. Attacks are the conducts of
// actors/conduct/attacks_on_values.hpp and aggregators those of actors::aggregators(), so a swarm
// runs the same code.
//
// Honest members contribute first, so attackers that know everybody know the step that they attack.
// The defence `btard` clips, audits and bans as a swarm does (robust_btard.hpp).
// Nothing refuses values for their size, as reducers of a swarm do (averaging_config::
// max_norm_ratio).
// Source: the setting of Gorbunov et al., "Secure Distributed Training at Scale", arXiv:2106.11257,
// section 4.1.
#pragma once

#include "actors/averaging/aggregator_options.hpp"
#include "actors/conduct/conduct_options.hpp"
#include "kernels/base/definition_list.hpp"
#include "kernels/base/payload.hpp"
#include "kernels/base/result.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace shoal::scenarios {

class prepared_workload;

/// One member's contribution to a step.
struct bench_contribution {
  double weight = 0;
  payload values;
  std::size_t member = 0;
};

/// A defence during one run of the bench.
class bench_defence {
public:
  virtual ~bench_defence() = default;
  /// The gradient of a step [n]. Nothing if no contribution can be used. `from`: the members that
  /// contribute, ascending.
  virtual payload reduce(std::uint64_t step, std::span<const bench_contribution> from) = 0;
  /// False if the member contributes nothing to the coming step. The others then compute its
  /// samples.
  virtual bool contributes(std::size_t) const { return true; }
  /// Called after each step. `honest` computes the contribution that the member owed.
  virtual void audit(std::span<const bench_contribution>,
                     const std::function<payload(std::size_t member)>& /*honest*/) {}
};

/// A defence by name. To add one: defences().add() when the program starts.
struct defence_definition {
  std::string name;
  std::string meaning;
  /// `options` are those behind the name in a specification. Errors: unknown or wrong options.
  std::function<result<std::unique_ptr<bench_defence>>(const actors::option_values& options,
                                                       std::size_t members, std::size_t attackers)>
      make;
};

/// The aggregators with their options, and what was added.
definition_list<defence_definition>& defences();

struct robust_cell {
  std::string attack;  ///< a conduct and its strength, as 'flipped_signs:1000', or 'none'
  std::string defence; ///< a defence and options, as 'centered_clip:radius=0.5'
  std::size_t attackers = 0;
  std::uint64_t seed = 1;
};

struct robust_bench {
  scenario from; ///< the workload, its data, the optimizer, target_batch and epochs
  std::size_t members = 16;
  std::uint64_t from_step = 0; ///< the first attacked step
  actors::attacker_knowledge knows = actors::attacker_knowledge::everybody;
};

struct robust_outcome {
  double loss = 0;     ///< held-out, of the last step; NaN: the run diverged
  double accuracy = 0; ///< share of held-out samples that are classified rightly; NaN: unknown
  std::vector<double> curve; ///< held-out loss at the start and after each tenth of the steps
};

/// Reads 'NAME' or 'NAME:OPTION=VALUE+...' or 'NAME:VALUE', where VALUE has the key `standard`.
/// Errors: says what is wrong.
result<std::pair<std::string, actors::option_values>> parse_spec(const std::string& text,
                                                                 const std::string& standard);

/// Runs one cell. Errors: an unknown attack or defence, a workload without numbers, an attack that
/// the workload cannot make, more attackers than members.
result<robust_outcome> run_robust_cell(const robust_bench& what, const robust_cell& cell);

} // namespace shoal::scenarios
