// Shoal with a workload, a role, an averaging strategy, an expert block and a program that its tree
// does not have.
// The command 'reference' prints the page of all options.
#include "actors/averaging/averaging_strategy.hpp"
#include "scenarios/experts/expert_block_kind.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/roles/role.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/workloads/workload.hpp"
#include "tools/program.hpp"

#include <cstdio>
#include <string_view>

namespace extension {
shoal::scenarios::workload_definition ridge_workload();
shoal::scenarios::role_definition observer_role();
shoal::actors::averaging_strategy ring_strategy();
shoal::scenarios::expert_block_kind plain_expert();
shoal::scenarios::program_definition forecast_program();
} // namespace extension

int main(int argc, char** argv) {
  shoal::scenarios::workloads().add(extension::ridge_workload());
  shoal::scenarios::roles().add(extension::observer_role());
  shoal::actors::averaging_strategies().add(extension::ring_strategy());
  shoal::scenarios::expert_blocks().add(extension::plain_expert());
  shoal::scenarios::programs().add(extension::forecast_program());
  if (argc == 2 && std::string_view(argv[1]) == "reference")
    return std::puts(shoal::scenarios::reference_markdown().c_str()) < 0;
  return shoal::tools::run_program(argc, argv);
}
