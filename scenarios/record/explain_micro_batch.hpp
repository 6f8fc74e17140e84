// Tells where the time of a pipeline's slowest micro-batches went, from a run's events.jsonl.zst
// and peers.csv. Each trainer logs the slowest micro-batch of its part of each batch.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// A task that a host of a stage has done for the micro-batch.
struct explained_task {
  std::uint32_t hop = 0, stage = 0;
  bool backward = false;
  std::string host;
  duration sent{};     ///< in the last try
  duration answered{}; ///< the answer had arrived
  duration computed{};
  std::uint32_t tries = 1;
  /// The time on the lines and in the queue of the host.
  duration underway() const { return answered - sent - computed; }
};

struct explained_micro_batch {
  std::string trainer;
  std::uint64_t epoch = 0, number = 0, samples = 0;
  duration begun{}, done{};
  std::vector<explained_task> tasks; ///< in the order of their answers
};

/// The slowest first, at most `most`. Errors: no log; a run without a pipeline, or that no batch
/// ended in.
result<std::vector<explained_micro_batch>> explain_micro_batches(const std::filesystem::path& run,
                                                                 std::size_t most = 5);
std::string to_text(const std::vector<explained_micro_batch>& all);
std::string to_json(const std::vector<explained_micro_batch>& all);

} // namespace shoal::scenarios
