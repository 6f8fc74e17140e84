#include "tools/python/scenario_text.hpp"

#include "scenarios/programs/program.hpp"
#include "scenarios/schema/document.hpp"
#include "scenarios/schema/load.hpp"

#include <pybind11/stl.h>

#include <string>
#include <vector>

namespace shoal::python {

namespace py = pybind11;
using namespace scenarios;

namespace {

/// A mapping is a dictionary, and a scalar is its text.
py::object to_python(const node& from) {
  switch (from.kind) {
  case node_kind::null:
    return py::none();
  case node_kind::scalar:
    return py::str(from.text);
  case node_kind::sequence: {
    py::list out;
    for (const auto& each : from.items) out.append(to_python(*each));
    return out;
  }
  case node_kind::mapping: {
    py::dict out;
    for (const auto& each : from.entries) out[py::str(each.key)] = to_python(*each.value);
    return out;
  }
  }
  return py::none();
}

/// The tree of a text that can be parsed; other texts have None. Its problems are those of check().
py::object parse(const std::string& text) {
  const auto made = parse_document(text);
  return made.root ? to_python(*made.root) : py::none();
}

py::dict check(const std::string& text, const std::string& file_name,
               const std::vector<std::string>& sets) {
  const auto loaded = load_text(text, file_name, sets);
  py::dict out;
  out["errors"] = diagnostics(loaded.errors);
  out["warnings"] = diagnostics(loaded.warnings);
  out["resolved"] = loaded.value ? py::object(py::str(to_yaml(*loaded.value))) : py::none();
  const auto* program = loaded.value ? &loaded.value->program.definition() : nullptr;
  out["outline"] = program && program->outline
                       ? py::object(py::str(program->outline(*loaded.value)))
                       : py::none();
  return out;
}

} // namespace

py::list diagnostics(std::span<const diagnostic> all) {
  py::list out;
  for (const auto& each : all) {
    py::dict one;
    one["file"] = each.file;
    one["line"] = each.line;
    one["column"] = each.column;
    one["message"] = each.message;
    one["notes"] = each.notes;
    one["warning"] = each.warning;
    one["text"] = render(each);
    out.append(std::move(one));
  }
  return out;
}

void add_scenarios(py::module_& to) {
  to.def("parse", &parse, py::arg("text"));
  to.def("check", &check, py::arg("text"), py::arg("file_name"), py::arg("sets"));
}

} // namespace shoal::python
