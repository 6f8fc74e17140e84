// Aggregators and workloads that are written in Python. They are slow, and give the same bits in
// each run if the Python code does. C++ and Python exchange copies of values, so that Python may
// keep them.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace shoal::python {

namespace py = pybind11;

/// A Python object that C++ keeps. Its last owner may be a thread without the interpreter's lock.
using kept_object = std::shared_ptr<py::object>;
kept_object keep(py::object what);

/// An option of a definition, with its default. The default's type is the type of the option.
struct python_option {
  std::string name;
  std::variant<bool, std::uint64_t, double, std::string> standard;
  bool operator==(const python_option&) const = default;
};
/// Throws if a default has another type.
std::vector<python_option> options_of(const py::dict& from);

void add_extensions(py::module_& to);

} // namespace shoal::python
