#include "scenarios/promote/deployment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shoal::scenarios {

namespace {

constexpr std::string_view batch = R"~(#!/bin/bash
# One job for all nodes of '@NAME@', a task each. Written by 'shoal promote', to be read and changed. Submit it in this folder, which
# all nodes of the cluster have to see, with the program and (keys/NODE) their keys:
#   sbatch job.sbatch
#SBATCH --job-name=shoal-@NAME@
#SBATCH --ntasks=@TASKS@
#SBATCH --cpus-per-task=@CORES@
#SBATCH --mem-per-cpu=@MEMORY@M
#SBATCH --time=@TIME@
#SBATCH --output=job-%j.log
# A minute before the time is over they are told to leave in good order.
#SBATCH --signal=B:TERM@60

set -u
export SHOAL_PORT=${SHOAL_PORT:-7000}
# Where the first task is: the others join it. Tasks are laid out in blocks, so it is on the first node.
SHOAL_FIRST=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export SHOAL_FIRST
# The shell has to be awake when the signal comes.
srun --distribution=block --kill-on-bad-exit=0 ./node &
trap 'kill -TERM $!' TERM
wait
status=$?
wait
exit $status
)~";

constexpr std::string_view node_script = R"~(#!/bin/bash
# One task of job.sbatch: one node.
set -u
nodes=(@NODES@)
name=${nodes[$SLURM_PROCID]:?more tasks than nodes}
# Tasks on one machine take ports that follow each other.
port=$((SHOAL_PORT + SLURM_LOCALID))
mkdir -p out
exec @PROGRAM@ node --scenario scenario.yaml @KEYS@ --name "$name" --listen "0.0.0.0:$port" --advertise "${SLURMD_NODENAME:-$(hostname)}:$port" \
  --join "$SHOAL_FIRST:$SHOAL_PORT"@PACE@ --quiet --out "out/$name-$(date -u +%Y%m%dT%H%M%SZ)"
)~";

} // namespace

std::string slurm_time(std::uint64_t minutes) {
  return fmt::format("{}-{:02}:{:02}:00", minutes / 1440, minutes / 60 % 24, minutes % 60);
}

std::vector<deployed_file> slurm_files(const deployment& what) {
  std::string names;
  for (const auto& host : what.hosts) names += (names.empty() ? "" : " ") + host.name;
  // The limit is one and a half times the prediction, plus time to start and to end.
  const auto minutes = static_cast<std::uint64_t>(std::ceil(1.5 * what.seconds / 60 + 5));
  const auto per_core =
      std::max<std::uint64_t>((3 * what.memory_bytes / 2 >> 20) / what.needs_cores, 256);
  return {{"job.sbatch", filled(batch, {{"NAME", what.name},
                                        {"TASKS", std::to_string(what.hosts.size())},
                                        {"CORES", std::to_string(what.needs_cores)},
                                        {"MEMORY", std::to_string(per_core)},
                                        {"TIME", slurm_time(minutes)}})},
          {"node",
           filled(node_script, {{"NODES", names},
                                {"PROGRAM", shell_word(what.program)},
                                {"PACE", what.pace ? " --pace" : ""},
                                {"KEYS", what.insecure ? "--insecure" : "--keys \"keys/$name\""}}),
           true}};
}

} // namespace shoal::scenarios
