#include "tools/python/python_aggregator.hpp"

#include "actors/averaging/robust_aggregator.hpp"
#include "scenarios/schema/hosts.hpp"
#include "tools/python/callbacks.hpp"

#include <fmt/format.h>
#include <pybind11/numpy.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

namespace shoal::python {

namespace {

using kernels::weighted_values;

/// The function behind a name. It is never destroyed, because the interpreter ends before static
/// objects do.
struct method {
  std::string name;
  py::object function;
  actors::aggregation_unit unit{};
  std::vector<python_option> options;
};

std::map<std::string, method*>& methods() {
  static auto* all = new std::map<std::string, method*>;
  return *all;
}

py::dict keywords(const method& of, const actors::aggregation_setting& how) {
  py::dict out;
  for (const auto& one : of.options) {
    const py::str name(one.name);
    if (std::holds_alternative<bool>(one.standard))
      out[name] = how.flag(one.name);
    else if (std::holds_alternative<std::uint64_t>(one.standard))
      out[name] = how.count(one.name);
    else
      out[name] = how.number(one.name);
  }
  return out;
}

/// Calls the function, and writes its result to `out`. After an exception `out` is zero.
template <class Out>
void call(const method& of, std::span<const weighted_values> inputs,
          const actors::aggregation_setting& how, std::span<Out> out) {
  const bool done = call_python([&] {
    const auto rows = static_cast<py::ssize_t>(inputs.size()),
               columns = static_cast<py::ssize_t>(out.size());
    py::array_t<float> values({rows, columns});
    py::array_t<double> weights(rows);
    for (py::ssize_t i = 0; i < rows; ++i) {
      const auto& one = inputs[static_cast<std::size_t>(i)];
      std::memcpy(values.mutable_data(i, 0), one.values.data(), one.values.size_bytes());
      weights.mutable_at(i) = one.weight;
    }
    const py::object made = of.function(values, weights, **keywords(of, how));
    const auto numbers =
        py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(made);
    if (!numbers)
      throw py::type_error(
          fmt::format("the aggregator '{}' returned no array of numbers", of.name));
    if (numbers.ndim() != 1 || numbers.size() != columns)
      throw py::value_error(
          fmt::format("the aggregator '{}' returned the shape {}, expected ({},)", of.name,
                      std::string(py::str(py::object(numbers.attr("shape")))), columns));
    std::transform(numbers.data(), numbers.data() + columns, out.begin(),
                   [](double x) { return static_cast<Out>(x); });
  });
  if (!done) std::fill(out.begin(), out.end(), Out{});
}

class collector final : public actors::robust_aggregator {
public:
  collector(const method& of, const actors::aggregation_setting& how)
      : robust_aggregator(how), method_(of) {}

private:
  void reduce(std::span<const weighted_values> inputs, std::span<float> out) const override {
    call(method_, inputs, setting_, out);
  }
  const method& method_;
};

std::optional<std::string> verify(const method& of, const actors::aggregate_claim& what) {
  auto wrong = actors::verify_robust(
      what, of.unit, of.name, [&](std::span<const weighted_values> inputs, std::span<double> out) {
        call(of, inputs, what.setting, out);
      });
  // The exception that ends the run says more.
  if (callback_failed()) return std::nullopt;
  return wrong;
}

actors::aggregator_definition definition_of(const method& of, const std::string& meaning) {
  actors::aggregator_definition out;
  out.name = of.name;
  out.meaning = meaning;
  out.unit = of.unit;
  out.make = [&of](const actors::aggregation_setting& how) {
    return std::make_unique<collector>(of, how);
  };
  out.verify = [&of](const actors::aggregate_claim& what) { return verify(of, what); };
  std::vector<actors::aggregator_option> options;
  for (const auto& one : of.options) {
    using enum actors::option_form;
    actors::aggregator_option made{one.name, "an option of a function in Python"};
    if (const auto* flags = std::get_if<bool>(&one.standard))
      made.form = flag, made.standard = *flags;
    else if (const auto* counts = std::get_if<std::uint64_t>(&one.standard))
      made.form = count, made.standard = static_cast<double>(*counts);
    else
      made.standard = std::get<double>(one.standard);
    options.push_back(std::move(made));
  }
  out.options = actors::with_mixing(std::move(options));
  return out;
}

} // namespace

void register_aggregator(const std::string& name, const py::object& function,
                         const std::string& unit, const std::string& meaning,
                         const py::dict& options) {
  if (only_run::in_progress())
    throw std::runtime_error("a run is in progress: register before it begins");
  if (!scenarios::is_plain_name(name))
    throw py::value_error(
        fmt::format("'{}' cannot name an aggregator: use a-z, 0-9, '_' and '-'", name));
  if (!PyCallable_Check(function.ptr()))
    throw py::type_error("an aggregator is a function of values and weights");
  if (unit != "chunk" && unit != "part")
    throw py::value_error(fmt::format("unit is '{}', expected 'chunk' or 'part'", unit));
  const auto sort =
      unit == "part" ? actors::aggregation_unit::part : actors::aggregation_unit::chunk;
  auto all = options_of(options);
  for (const auto& one : all) {
    if (std::holds_alternative<std::string>(one.standard))
      throw py::type_error(fmt::format(
          "'{}' is a text: the options of an aggregator are numbers and flags", one.name));
    if (one.name == "bucket_size" || one.name == "nearest_mixing")
      throw py::value_error(fmt::format("every aggregator has the option '{}' already", one.name));
  }
  if (const auto known = methods().find(name); known != methods().end()) {
    if (known->second->options != all || known->second->unit != sort)
      throw py::value_error(fmt::format(
          "'{}' is registered with another unit or other options: take another name", name));
    known->second->function = function;
    return;
  }
  if (actors::aggregators().find(name) != nullptr)
    throw py::value_error(fmt::format("Shoal has an aggregator '{}' of its own", name));
  auto* made = new method{name, function, sort, std::move(all)};
  methods()[name] = made;
  actors::aggregators().add(definition_of(*made, meaning));
}

} // namespace shoal::python
