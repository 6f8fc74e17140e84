// Shoal with a workload and a role that its tree does not have.
#include "scenarios/roles/role.hpp"
#include "scenarios/workloads/workload.hpp"
#include "tools/program.hpp"

namespace extension {
shoal::scenarios::workload_definition ridge_workload();
shoal::scenarios::role_definition observer_role();
}  // namespace extension

int main(int argc, char** argv) {
  shoal::scenarios::workloads().add(extension::ridge_workload());
  shoal::scenarios::roles().add(extension::observer_role());
  return shoal::tools::run_program(argc, argv);
}
