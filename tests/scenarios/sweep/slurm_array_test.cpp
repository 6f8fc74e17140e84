#include "scenarios/sweep/slurm_array.hpp"

#include <doctest/doctest.h>

using namespace shoal::scenarios;

TEST_CASE("a sweep has a task for each cell, up to what Slurm takes") {
  slurm_array what;
  what.name = "My reef";
  what.directory = "/scratch/my sweep";
  what.cells = 45;
  what.jobs = 8;
  auto files = slurm_array_files(what);
  REQUIRE(files.size() == 3);
  CHECK(files[0].path == "submit");
  CHECK(files[0].executable);
  CHECK(files[1].text.find("#SBATCH --array=0-44%8\n") != std::string::npos);
  CHECK(files[1].text.find("#SBATCH --job-name=sweep-my-reef\n") != std::string::npos);
  CHECK(files[1].text.find("exec shoal sweep --out '/scratch/my sweep' --part "
                           "\"$SLURM_ARRAY_TASK_ID/45\" -j 1 --quiet\n") != std::string::npos);
  CHECK(files[1].text.find("guesses") != std::string::npos);
  what.cells = 2500;
  what.cell_seconds = 600;
  what.cell_bytes = 1ull << 30;
  files = slurm_array_files(what);
  CHECK(files[1].text.find("#SBATCH --array=0-999%8\n") != std::string::npos);
  // Three cells a task, half as long again, and five minutes.
  CHECK(files[1].text.find("#SBATCH --time=0-00:50:00\n") != std::string::npos);
  CHECK(files[1].text.find("#SBATCH --mem=1536M\n") != std::string::npos);
}
