#include "scenarios/sweep/slurm_array.hpp"

#include "kernels/base/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shoal::scenarios {

namespace {

constexpr std::string_view submit = R"~(#!/bin/bash
# Submits the sweep of '@NAME@', and behind it the job that makes its table. Written by 'shoal sweep --slurm'.
set -eu
cd "$(dirname "$0")"
array=$(sbatch --parsable array.sbatch)
table=$(sbatch --parsable --dependency="afterany:$array" table.sbatch)
echo "array $array, table $table"
)~";

constexpr std::string_view array = R"~(#!/bin/bash
# The cells of a sweep of '@NAME@', @CELLS@ in @TASKS@ tasks. Written by 'shoal sweep --slurm', to be read and changed: ./submit submits it. All machines
# of the cluster have to see this folder, the scenario and the program at the same paths.
#SBATCH --job-name=sweep-@NAME@
#SBATCH --array=0-@LAST@%@JOBS@
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
# @MEASURED@
#SBATCH --mem=@MEMORY@M
#SBATCH --time=@TIME@
#SBATCH --output=slurm/array-%a.log

exec @PROGRAM@ sweep --out @DIRECTORY@ --part "$SLURM_ARRAY_TASK_ID/@TASKS@" -j 1 --quiet
)~";

constexpr std::string_view table = R"~(#!/bin/bash
# Makes the table of the sweep of '@NAME@', after running what the array has left undone.
#SBATCH --job-name=sweep-@NAME@-table
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=@MEMORY@M
#SBATCH --time=@TIME@
#SBATCH --output=slurm/table.log

exec @PROGRAM@ sweep --out @DIRECTORY@ -j 1 --quiet
)~";

} // namespace

std::vector<deployed_file> slurm_array_files(const slurm_array& what) {
  SHOAL_CHECK(what.cells > 0, "a sweep without cells");
  const auto tasks = std::min(what.cells, most_array_tasks);
  const auto share = (what.cells + tasks - 1) / tasks;
  const bool measured = what.cell_seconds > 0;
  // The limits leave half as much again as the longest and the largest cell so far took.
  const auto minutes =
      measured ? static_cast<std::uint64_t>(
                     std::ceil(1.5 * what.cell_seconds * static_cast<double>(share) / 60 + 5))
               : 1440;
  const auto memory = measured ? std::max<std::uint64_t>(3 * what.cell_bytes / 2 >> 20, 256) : 2048;
  const std::initializer_list<std::pair<std::string_view, std::string>> values{
      {"NAME", word_of(what.name)},
      {"CELLS", std::to_string(what.cells)},
      {"TASKS", std::to_string(tasks)},
      {"LAST", std::to_string(tasks - 1)},
      {"JOBS", std::to_string(what.jobs)},
      {"MEASURED", measured ? "From the cells that have run, and half as much again."
                            : "No cell has run yet: these are guesses."},
      {"MEMORY", std::to_string(memory)},
      {"TIME", slurm_time(minutes)},
      {"PROGRAM", shell_word(what.program)},
      {"DIRECTORY", shell_word(what.directory)}};
  return {{"submit", filled(submit, values), true},
          {"array.sbatch", filled(array, values)},
          {"table.sbatch", filled(table, values)}};
}

} // namespace shoal::scenarios
