// Aggregators whose method is a function in Python:
//   function(values [k, n] float32, weights [k] float64, **options) -> [n]
// The definition has the mixing options of every robust aggregator, which C++ applies.
#pragma once

#include "tools/python/extensions.hpp"

#include <string>

namespace shoal::python {

/// Registers a function, or replaces the function of an earlier call with equal options.
/// Throws if the name is taken or no plain name, or a run is in progress.
void register_aggregator(const std::string& name, const py::object& function,
                         const std::string& unit, const std::string& meaning,
                         const py::dict& options);

} // namespace shoal::python
