// The exceptions that the module raises, besides those of Python itself.
#pragma once

#include <stdexcept>

namespace shoal::python {

/// shoal.ScenarioError: a scenario, a file or a directory that cannot be used.
struct bad_scenario : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// shoal.RunError: a run that could not go on.
struct run_failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace shoal::python
