// Scenarios as Python has them: trees of dictionaries, and lists of diagnostics.
#pragma once

#include "scenarios/schema/diagnostic.hpp"

#include <pybind11/pybind11.h>

#include <span>

namespace shoal::python {

/// Each diagnostic as a dictionary: file, line, column, message, notes, warning, and the text of a
/// compiler. `line` is 0 for what is not in a file.
pybind11::list diagnostics(std::span<const scenarios::diagnostic> all);

void add_scenarios(pybind11::module_& to);

} // namespace shoal::python
