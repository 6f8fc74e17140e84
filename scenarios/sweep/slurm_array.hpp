// A sweep as a Slurm array: each task runs its share of the cells with 'shoal sweep --part', and a
// job behind it makes the table.
#pragma once

#include "scenarios/promote/deployment.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// Slurm's own limit of an array (MaxArraySize) is 1001 unless it is told otherwise.
constexpr std::size_t most_array_tasks = 1000;

struct slurm_array {
  std::string name;                ///< of the scenario
  std::string directory;           ///< of the sweep, absolute
  std::string program = "shoal";   ///< on the machines of the cluster
  std::size_t cells = 0, jobs = 1; ///< so many at a time
  double cell_seconds = 0;         ///< of the longest cell so far; 0: none has run
  std::uint64_t cell_bytes = 0;    ///< of memory, the same
};

/// submit, array.sbatch and table.sbatch, for the sweep's directory. Requires: cells > 0.
std::vector<deployed_file> slurm_array_files(const slurm_array& what);

} // namespace shoal::scenarios
