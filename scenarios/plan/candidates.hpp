// The ways to train a scenario's model on its hosts that `shoal plan` compares, each as the --set
// arguments that make it.
#pragma once

#include "scenarios/schema/scenario.hpp"

#include <string>
#include <vector>

namespace shoal::scenarios {

struct plan_candidate {
  std::string method, variant; ///< names of a method and of one of its variants
  /// Ways to give the roles of this variant to the hosts, each as further arguments. The fastest is
  /// of interest. At least one, which may be empty.
  std::vector<std::vector<std::string>> roles;
  std::vector<std::string> sets; ///< without the roles; empty: the scenario as it is
};

/// `file` and `sets`: where `what` was loaded from. Errors: none; the arguments may make a scenario
/// that the checks refuse, with the reason why it is impossible.
std::vector<plan_candidate> plan_candidates(const scenario& what, const std::string& file,
                                            const std::vector<std::string>& sets);

} // namespace shoal::scenarios
