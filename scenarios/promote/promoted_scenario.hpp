// A scenario as it runs on the hosts of an inventory: the same training, and for each host a group
// of its own with what was measured on it. The simulation of it is the prediction, and it is what
// the nodes are given.
#pragma once

#include "scenarios/schema/inventory.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// What a measurement of samples per second is true of, in words: the model's shape and the
/// micro-batch.
std::string fingerprint_of(const scenario& what);

struct promotion {
  scenario what;
  std::vector<std::string> notes; ///< what of the scenario only a simulation has, and was left out
};

/// Bytes that a node needs: what the process had while it measured, and beside it two gradients, a
/// mean and a state under way, in floats.
std::uint64_t memory_of_node(const inventory_host& host, std::uint64_t values);

/// `values`: numbers in the model. Nothing if there are `errors`, a sentence each: no host has the
/// text, or not as many as `data.replicas`; a host without a measurement, or with one of another
/// model; a group that the scenario has not; too little memory for the model.
std::optional<promotion> promote(const scenario& from, const inventory& to, std::uint64_t values,
                                 std::vector<std::string>& errors);

} // namespace shoal::scenarios
