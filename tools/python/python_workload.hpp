// Workloads that are classes in Python. An object is made by factory(seed=..., **options), and has
//   initial() -> [n] float32                     the first parameters
//   sample(index) -> array of float32            of one shape for all indices
//   gradient(parameters [n], samples [k, ...]) -> (sum of losses, sum of gradients [n])
//   held_out_loss(parameters [n]) -> float       optional
// The optimizer's step is C++.
#pragma once

#include "tools/python/extensions.hpp"

#include <string>

namespace shoal::python {

/// Registers a class, or replaces the class of an earlier call with equal options.
/// Throws if the name is taken or no plain name, or a run is in progress.
void register_workload(const std::string& name, const py::object& factory,
                       const std::string& meaning, const py::dict& options);

} // namespace shoal::python
