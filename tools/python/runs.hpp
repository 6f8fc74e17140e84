// Runs a scenario from Python, and reads run directories.
#pragma once

#include <pybind11/pybind11.h>

namespace shoal::python {

void add_runs(pybind11::module_& to);

} // namespace shoal::python
