// The memory that a host needs for its part of training.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/memory_estimate.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// The inputs of an estimate for a peer that holds the whole model. Nothing for workloads that are
/// no transformer. Errors: a transformer that the estimate does not know.
result<std::optional<kernels::memory_choices>> memory_choices_of(const scenario& what);

struct memory_need {
  std::string group;
  std::string what;        ///< 'the whole model', 'stage 0'
  std::uint64_t bytes = 0; ///< for one host
  std::uint64_t has = 0;   ///< that the group's device has; 0: not known
  bool fits() const noexcept { return has == 0 || bytes <= has; }
};

/// One for each group that trains. The values inside a pass count for transformers only. Those of a
/// stage are estimated as its share of the whole model's.
std::vector<memory_need> memory_needs_of(const scenario& what);

} // namespace shoal::scenarios
