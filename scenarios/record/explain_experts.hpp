// Where the time of the trainers of a mixture went: look-ups of experts, their answers, and the
// rest. The slowest calls are taken apart into network, queue and computing.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// A step of a trainer, and its slowest call of an expert.
struct expert_step_facts {
  std::string trainer, expert;
  std::string host; ///< empty: the log has no batch in the time of the call
  std::uint64_t step = 0;
  duration ended{}, lasted{}, look_ups{}, waiting{};
  bool backward = false;
  duration call{};                ///< the slowest call
  duration queued{}, computing{}; ///< at the call's host; the rest is the network
};

struct expert_steps {
  std::vector<expert_step_facts> slowest; ///< by the time of their slowest call
  std::uint64_t steps = 0, lost = 0;      ///< lost: calls without an answer
  duration lasted{}, look_ups{}, waiting{};
};

/// Picks the `most` steps with the slowest calls. Errors: `run` has no log of events, or no steps
/// of trainers of experts.
result<expert_steps> explain_experts(const std::filesystem::path& run, std::size_t most = 5);

std::string to_text(const expert_steps& what);
std::string to_json(const expert_steps& what);

} // namespace shoal::scenarios
