// Turns a scenario into one for the hosts of an inventory. The training stays the same. Each host
// becomes a group of its own, with the values that were measured on it. The nodes run the promoted
// scenario, and its simulation is the prediction.
#pragma once

#include "scenarios/schema/inventory.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// Returns the model's shape and the micro-batch in words. A measurement of samples per second is
/// valid for scenarios with the same words.
std::string fingerprint_of(const scenario& what);

struct promotion {
  scenario what;
  std::vector<std::string> notes; ///< parts of the scenario that only a simulation has
};

/// Returns the bytes that a node needs. The sum has the memory of the measuring process and, in
/// floats, two gradients, a mean and a state in transfer.
std::uint64_t memory_of_node(const inventory_host& host, std::uint64_t values);

/// Promotes `from` to the hosts of `to`. `values` is the number of parameters of the model.
/// Returns nothing when the call appends to `errors`, one sentence each.
/// Errors: fewer hosts have the text than `data.replicas`; a host lacks a measurement of this
/// model; a host names a group that the scenario lacks; a host has too little memory.
std::optional<promotion> promote(const scenario& from, const inventory& to, std::uint64_t values,
                                 std::vector<std::string>& errors);

} // namespace shoal::scenarios
