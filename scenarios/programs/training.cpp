// The program 'training': a swarm trains a model. Every section of a scenario file but those of
// other programs belongs to it.
#include "scenarios/programs/program.hpp"
#include "scenarios/schema/check_scenario.hpp"
#include "scenarios/schema/hosts.hpp"

#include <fmt/format.h>

namespace shoal::scenarios {

program_definition training_program() {
  program_definition out;
  out.name = "training";
  out.meaning = "a swarm trains a model";
  out.title = "a training run";
  out.check = check_training;
  out.outline = [](const scenario& what) {
    const auto hosts = expand_hosts(what).size(), faults = what.faults.size();
    return fmt::format("{} peer{}, {} fault{}", hosts, hosts == 1 ? "" : "s", faults,
                       faults == 1 ? "" : "s");
  };
  out.last_epoch = [](const scenario& what) { return what.training.epochs; };
  return out;
}

} // namespace shoal::scenarios
