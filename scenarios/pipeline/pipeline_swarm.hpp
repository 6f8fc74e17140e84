// A training pipeline in virtual time: hosts that serve its stages and come and go, and trainers
// that send micro-batches through them. Its actors are those of every world (actors/pipeline/).
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/pipeline/observations.hpp"
#include "actors/pipeline/stage_model.hpp"
#include "actors/training/workload.hpp"
#include "kernels/base/result.hpp"
#include "kernels/compress/codec.hpp"
#include "kernels/optimizer.hpp"
#include "scenarios/runner/flat_world.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace shoal::scenarios {

struct pipeline_swarm {
  std::shared_ptr<const actors::stage_model> model;
  std::vector<actors::state_ptr> initial; ///< the first state of each stage
  std::uint32_t time = 0;                 ///< tokens of a sample
  /// The bytes of the samples [first, first + count).
  std::function<payload(std::uint64_t first, std::uint64_t count)> samples;
  kernels::optimizer_config optimizer;
  actors::averaging_config averaging;
  kernels::codec activations = kernels::codec::none;
  std::uint64_t batch = 64, micro_batch = 4;
  std::uint64_t steps = 100; ///< 0: until `stop_time`
  std::size_t in_flight = 8;
  std::size_t hosts = 8; ///< host i begins in stage i modulo the stages
  std::uint32_t trainers = 1;
  duration rebalance_every{}; ///< 0: never
  duration sample_time = std::chrono::milliseconds(10), step_time = std::chrono::milliseconds(20);
  /// A host needs `sample_time` times a factor that is drawn between 1 and `slowest`.
  double slowest = 1;
  duration refresh = std::chrono::milliseconds(500); ///< hosts renew their records so often
  std::uint64_t seed = 1;
  flat_line line;
  duration detection_time = std::chrono::seconds(5);
  duration lifetime{}, downtime = std::chrono::seconds(30); ///< as in life_options
  duration stop_time = std::chrono::hours(1);
  /// Called when all stages have made the step, with their states. False ends the run. May be
  /// empty.
  std::function<bool(std::uint64_t step, const std::vector<actors::state_ptr>&)> on_step;
};

struct pipeline_figures {
  std::uint64_t steps = 0; ///< that all stages have made
  std::vector<actors::state_ptr> states;
  duration began{}, ended{};
  /// Mean training loss of each step's samples, and when the step was made.
  std::vector<double> losses;
  std::vector<duration> step_times;
  // Each step counts with the stage that is off the most.
  /// Samples that the mean of a step lacks, and those that it has more than once.
  std::uint64_t samples_missing = 0, samples_repeated = 0;
  std::uint64_t split_steps = 0;     ///< steps of a stage that two groups made apart
  std::uint64_t partial_batches = 0; ///< parts of batches that a trainer had to drop
  std::array<std::uint64_t, actors::task_failures> failures{};
  std::uint64_t hops_repeated = 0;    ///< counted gradients that were lost and computed again
  std::uint64_t batches_reopened = 0; ///< because a peer died before its stage had stepped
  std::uint64_t gradients_dropped = 0, samples_dropped = 0; ///< by peers that fell behind
  std::uint64_t deaths = 0, moves = 0, downloads = 0, download_bytes = 0;
  std::vector<std::size_t> hosts_at_end; ///< by stage
  std::vector<double> tasks;             ///< gradients that counted, by stage
  /// Samples a second that the weakest stage could compute, the mean over the run.
  double bound = 0;
  std::uint64_t bytes = 0, bypassed = 0, misbehaved = 0;
  bool stopped = false; ///< by `on_step`
  /// A stage whose hosts were all gone at once, and its state with them.
  std::optional<std::uint32_t> lost_stage;
};

/// Errors: fewer hosts than stages, or no trainer.
result<pipeline_figures> run_pipeline_swarm(const pipeline_swarm& what);

} // namespace shoal::scenarios
