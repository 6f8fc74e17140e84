// The answers of a process of a cluster to an operator: `shoal status` and `shoal drain`.
#pragma once

#include "netem/wire/network.hpp"
#include "scenarios/observe/node_report.hpp"

#include <functional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// The hosts to which a process has links, as its report lists them.
std::vector<node_report::neighbour>
neighbours_of(const std::vector<netem::wire::connected_peer>& links);

struct operated_process {
  std::string name;
  std::function<node_report()> report;
  std::function<bool()> leave;                   ///< false: the process was about to leave already
  std::function<void(const std::string&)> say{}; ///< a line for the owner; may be empty
};

/// Answers `question` of `who`. Only an operator may order a process to leave.
netem::wire::control_answer answer_to(const netem::wire::control_client& who,
                                      const std::string& question, const operated_process& here);

} // namespace shoal::scenarios
