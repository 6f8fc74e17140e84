// Runs the cells of a sweep, each as a process of its own: `shoal run` into
// DIR/cells/<number>.partial, renamed once it has ended well, so that a cell is there whole or not
// at all. What the process says is in run.log beside its other files. A process ends with the one
// that started it. Several sweeps may work on one directory: a cell is locked by run.log while it
// runs, and is run once.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/sweep/plan.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct failed_cell {
  std::size_t cell = 0;
  std::string how;       ///< 'exit status 3', 'signal 9 (Killed)'
  std::string last_line; ///< of its log
};

struct sweep_progress {
  std::size_t cells = 0, finished = 0, failed = 0, running = 0;
  std::size_t ran = 0; ///< of the finished and failed ones: by this sweep, not found
};

struct cell_runner {
  std::filesystem::path directory;
  std::string program;                ///< an executable
  std::vector<std::string> arguments; ///< of 'shoal run', for every cell
  std::size_t jobs = 1;               ///< at a time
  std::function<void(const sweep_progress&)>
      on_progress;                   ///< at each end of a cell, and a few times in a second
  std::function<bool()> interrupted; ///< then processes are ended, and their cells are not there
};

struct cells_outcome {
  std::vector<failed_cell> failed; ///< by their number
  sweep_progress progress;
  bool interrupted = false;
};

/// Whether the cell is finished.
bool has_cell(const sweep_plan& plan, const std::filesystem::path& directory, std::size_t cell);

/// Runs those of `cells` that are not finished, and waits for those that another sweep runs.
/// Errors: a directory or a process cannot be made.
result<cells_outcome> run_cells(const sweep_plan& plan, const std::vector<std::size_t>& cells,
                                const cell_runner& how);

} // namespace shoal::scenarios
