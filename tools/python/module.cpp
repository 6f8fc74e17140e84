// The module `shoal._shoal`. The package around it (tools/python/shoal) has the names and the
// documentation that users see.
#include "kernels/base/program_file.hpp"
#include "kernels/learn/torch_loader.hpp"
#include "scenarios/record/version.hpp"
#include "tools/build_identity.hpp"
#include "tools/python/errors.hpp"
#include "tools/python/extensions.hpp"
#include "tools/python/kernels.hpp"
#include "tools/python/runs.hpp"
#include "tools/python/scenario_text.hpp"

#include <pybind11/pybind11.h>

#include <string>

PYBIND11_MODULE(_shoal, module) {
  namespace py = pybind11;
  using namespace shoal::python;
#if SHOAL_WITH_LEARN
  // NumPy loads OpenBLAS, too.
  shoal::learn::choose_loops();
#endif

  py::register_exception<bad_scenario>(module, "ScenarioError", PyExc_ValueError);
  py::register_exception<run_failed>(module, "RunError", PyExc_RuntimeError);
  module.attr("version") = std::string(shoal::scenarios::version());
  module.attr("build") = shoal::tools::build_identity();
  module.def("set_program_file", [](const std::string& file) { shoal::set_program_file(file); });
  add_scenarios(module);
  add_runs(module);
  add_kernels(module);
  add_extensions(module);
}
