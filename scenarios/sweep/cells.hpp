// Runs the cells of a sweep. Each cell is a process `shoal run` that writes to
// DIR/cells/<number>.partial. The folder is renamed when the process succeeds, so a cell is either
// complete or absent. The process's output goes to run.log in that folder. The process ends when
// the sweep ends. Several sweeps may share one directory: a lock on run.log makes sure that only
// one of them runs a cell.
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
  std::string how;       ///< how its process ended: 'exit status 3', 'signal 9 (Killed)'
  std::string last_line; ///< the last line of its log
};

struct sweep_progress {
  std::size_t cells = 0, finished = 0, failed = 0, running = 0;
  std::size_t ran = 0; ///< finished and failed cells that this sweep ran itself
};

struct cell_runner {
  std::filesystem::path directory;
  std::string program;                ///< path of the executable `shoal`
  std::vector<std::string> arguments; ///< further arguments of `shoal run`, for every cell
  std::size_t jobs = 1;               ///< processes at a time
  /// Called when a cell ends, and a few times a second.
  std::function<void(const sweep_progress&)> on_progress;
  /// When this returns true, the sweep kills its processes and drops their cells.
  std::function<bool()> interrupted;
};

struct cells_outcome {
  std::vector<failed_cell> failed; ///< in the order of their numbers
  sweep_progress progress;
  bool interrupted = false;
};

/// Returns whether `directory` holds the finished cell.
bool has_cell(const sweep_plan& plan, const std::filesystem::path& directory, std::size_t cell);

/// Runs the unfinished ones of `cells`, and waits for the cells that another sweep runs.
/// Errors: a directory or a process cannot be created.
result<cells_outcome> run_cells(const sweep_plan& plan, const std::vector<std::size_t>& cells,
                                const cell_runner& how);

} // namespace shoal::scenarios
