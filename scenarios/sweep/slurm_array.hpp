// A sweep as a Slurm array. Each task runs its share of the cells with 'shoal sweep --part'. A job
// that depends on the array makes the table.
#pragma once

#include "scenarios/promote/deployment.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// Slurm's default limit for the size of an array (MaxArraySize) is 1001.
constexpr std::size_t most_array_tasks = 1000;

struct slurm_array {
  std::string name;              ///< name of the scenario
  std::string directory;         ///< absolute path of the sweep
  std::string program = "shoal"; ///< path of the program on the cluster's machines
  std::size_t cells = 0;
  std::size_t jobs = 1;         ///< cells at a time
  double cell_seconds = 0;      ///< duration of the longest cell so far; 0: no cell has run
  std::uint64_t cell_bytes = 0; ///< memory of the largest cell so far; 0: no cell has run
};

/// Returns the files submit, array.sbatch and table.sbatch for the sweep's directory.
/// Requires: cells > 0.
std::vector<deployed_file> slurm_array_files(const slurm_array& what);

} // namespace shoal::scenarios
