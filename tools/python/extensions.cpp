#include "tools/python/extensions.hpp"

#include "tools/python/callbacks.hpp"
#include "tools/python/python_aggregator.hpp"
#include "tools/python/python_workload.hpp"

#include <fmt/format.h>

namespace shoal::python {

std::vector<python_option> options_of(const py::dict& from) {
  std::vector<python_option> out;
  for (const auto& [key, value] : from) {
    python_option one{py::cast<std::string>(key), false};
    if (one.name == "kind" || one.name.empty())
      throw py::value_error(fmt::format("'{}' cannot name an option", one.name));
    if (py::isinstance<py::bool_>(value))
      one.standard = value.cast<bool>();
    else if (py::isinstance<py::int_>(value) && value >= py::int_(0))
      one.standard = value.cast<std::uint64_t>();
    else if (py::isinstance<py::float_>(value))
      one.standard = value.cast<double>();
    else if (py::isinstance<py::str>(value))
      one.standard = value.cast<std::string>();
    else
      throw py::type_error(fmt::format("the default of '{}' is neither True or False, nor a whole "
                                       "number from 0, nor a float, nor a text",
                                       one.name));
    out.push_back(std::move(one));
  }
  return out;
}

kept_object keep(py::object what) {
  return {new py::object(std::move(what)), [](py::object* it) {
            const py::gil_scoped_acquire lock;
            delete it;
          }};
}

void add_extensions(py::module_& to) {
  to.def("register_aggregator", &register_aggregator, py::arg("name"), py::arg("function"),
         py::arg("unit"), py::arg("meaning"), py::arg("options"));
  to.def("register_workload", &register_workload, py::arg("name"), py::arg("factory"),
         py::arg("meaning"), py::arg("options"));
}

} // namespace shoal::python
