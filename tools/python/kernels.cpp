#include "tools/python/kernels.hpp"

#include "actors/averaging/aggregator.hpp"
#include "kernels/averaging_plan.hpp"
#include "kernels/balanced_shares.hpp"
#include "kernels/compress/codec.hpp"
#include "kernels/compress/vector_codec.hpp"
#include "kernels/mixing.hpp"
#include "kernels/part_boundaries.hpp"
#include "tools/python/callbacks.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace shoal::python {

namespace {

constexpr std::size_t most_values = std::size_t{1} << 31;
constexpr std::size_t most_inputs = 1 << 20;

std::string type_name(py::handle of) {
  return py::str(py::type::handle_of(of).attr("__name__"));
}

/// The values of a one-dimensional array, without a copy. Errors call the argument `what`.
std::span<const float> floats(py::handle from, const std::string& what) {
  if (!py::isinstance<py::array>(from))
    throw py::type_error(
        fmt::format("{} is a {}, expected a NumPy array of float32", what, type_name(from)));
  const auto array = py::reinterpret_borrow<py::array>(from);
  if (!py::isinstance<py::array_t<float>>(from))
    throw py::type_error(fmt::format("{} has the type {}, expected float32: "
                                     "numpy.ascontiguousarray(x, dtype=numpy.float32) makes one",
                                     what, std::string(py::str(array.dtype()))));
  if (array.ndim() != 1)
    throw py::value_error(
        fmt::format("{} has {} dimensions, expected 1: x.ravel() has one", what, array.ndim()));
  if ((array.flags() & py::array::c_style) == 0 ||
      reinterpret_cast<std::uintptr_t>(array.data()) % alignof(float) != 0)
    throw py::value_error(
        fmt::format("{} is not contiguous: numpy.ascontiguousarray(x) makes a copy that is", what));
  return {static_cast<const float*>(array.data()), static_cast<std::size_t>(array.size())};
}

/// The array to write to: `given`, or a new one if `given` is None.
std::pair<py::array, std::span<float>> target(const py::object& given, std::size_t size) {
  if (given.is_none()) {
    py::array_t<float> made(static_cast<py::ssize_t>(size));
    return {made, {made.mutable_data(), size}};
  }
  const auto values = floats(given, "out");
  const auto array = py::reinterpret_borrow<py::array>(given);
  if (!array.writeable()) throw py::value_error("out cannot be written: it is read-only");
  if (values.size() != size)
    throw py::value_error(
        fmt::format("out has {} values, but the result has {}", values.size(), size));
  return {array, {const_cast<float*>(values.data()), size}};
}

bool overlap(std::span<const float> a, std::span<const float> b) {
  const auto begin = [](auto s) { return reinterpret_cast<std::uintptr_t>(s.data()); };
  return !a.empty() && !b.empty() && begin(a) < begin(b) + b.size_bytes() &&
         begin(b) < begin(a) + a.size_bytes();
}

std::vector<double> numbers(const py::object& from, const char* what, std::size_t most) {
  const auto array = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(from);
  if (!array) {
    PyErr_Clear();
    throw py::type_error(fmt::format("{} is not a list of numbers", what));
  }
  if (array.ndim() != 1)
    throw py::value_error(fmt::format("{} has {} dimensions, expected 1", what, array.ndim()));
  if (static_cast<std::size_t>(array.size()) > most)
    throw py::value_error(fmt::format("{} has {} numbers, at most {}", what, array.size(), most));
  return {array.data(), array.data() + array.size()};
}

/// The contributions to a mean. The arrays stay alive in `kept`.
struct contributions {
  std::vector<py::object> kept;
  std::vector<kernels::weighted_values> all;
  std::size_t size = 0;

  contributions(const py::object& values, const py::object& weights) {
    if (py::isinstance<py::array>(values) &&
        py::reinterpret_borrow<py::array>(values).ndim() == 2) {
      // Rows of a matrix are arrays.
      const auto rows = py::reinterpret_borrow<py::array>(values);
      if (rows.shape(0) > static_cast<py::ssize_t>(most_inputs))
        throw py::value_error(
            fmt::format("values has {} rows, at most {}", rows.shape(0), most_inputs));
      for (py::ssize_t i = 0; i < rows.shape(0); ++i) add(values[py::int_(i)]);
    } else if (py::isinstance<py::sequence>(values) && !py::isinstance<py::str>(values) &&
               !py::isinstance<py::bytes>(values)) {
      const auto list = py::reinterpret_borrow<py::sequence>(values);
      if (list.size() > most_inputs)
        throw py::value_error(
            fmt::format("values has {} arrays, at most {}", list.size(), most_inputs));
      for (std::size_t i = 0; i < list.size(); ++i) add(list[i]);
    } else {
      throw py::type_error(
          fmt::format("values is a {}, expected a list of arrays, or an array of two dimensions",
                      type_name(values)));
    }
    if (all.empty()) throw py::value_error("values is empty: a mean needs one array at least");
    set_weights(weights);
  }

  void must_not_overlap(std::span<const float> out) const {
    for (const auto& each : all)
      if (overlap(each.values, out))
        throw py::value_error("out shares memory with values: use another array");
  }

private:
  void add(py::object one) {
    const auto at = all.size();
    all.push_back({1, floats(one, fmt::format("values[{}]", at))});
    kept.push_back(std::move(one));
    if (at == 0) size = all[0].values.size();
    if (all[at].values.size() != size)
      throw py::value_error(fmt::format("values[{}] has {} values, but values[0] has {}", at,
                                        all[at].values.size(), size));
  }
  void set_weights(const py::object& weights) {
    if (weights.is_none()) return;
    const auto given = numbers(weights, "weights", most_inputs);
    if (given.size() != all.size())
      throw py::value_error(
          fmt::format("there are {} weights for {} arrays", given.size(), all.size()));
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!(given[i] >= kernels::smallest_weight && given[i] <= kernels::largest_weight))
        throw py::value_error(
            fmt::format("weights[{}] is {}, expected a number of samples from {} to {}", i,
                        given[i], kernels::smallest_weight, kernels::largest_weight));
      all[i].weight = given[i];
    }
  }
};

[[noreturn]] void not_finite(std::size_t input) {
  throw py::value_error(fmt::format("values[{}] has a value that is not finite", input));
}

py::array weighted_mean(const py::object& values, const py::object& weights,
                        const py::object& out) {
  const contributions from(values, weights);
  auto [array, into] = target(out, from.size);
  from.must_not_overlap(into);
  std::size_t bad = 0;
  {
    const py::gil_scoped_release unlocked;
    bad = kernels::weighted_mean(from.all, into);
  }
  if (bad < from.all.size()) not_finite(bad);
  return array;
}

// -- aggregators ----------------------------------------------------------------------------------

const char* form_name(actors::option_form form) {
  return form == actors::option_form::number  ? "number"
         : form == actors::option_form::count ? "count"
                                              : "flag";
}

py::dict aggregators() {
  py::dict out;
  for (const auto& each : actors::aggregators().all()) {
    py::dict options;
    for (const auto& option : each.options) {
      py::dict one;
      one["meaning"] = option.meaning;
      one["form"] = form_name(option.form);
      one["standard"] = option.standard;
      options[py::str(option.name)] = std::move(one);
    }
    py::dict one;
    one["meaning"] = each.meaning;
    one["unit"] = each.unit == actors::aggregation_unit::part ? "part" : "chunk";
    one["options"] = std::move(options);
    out[py::str(each.name)] = std::move(one);
  }
  return out;
}

void check_option(const actors::aggregator_option& option, double value) {
  const auto refuse = [&](const std::string& expected) {
    throw py::value_error(fmt::format("{} is {}, expected {}", option.name, value, expected));
  };
  if (!std::isfinite(value)) refuse("a finite number");
  if (option.form == actors::option_form::count &&
      (value < 0 || value > 9e15 || value != std::floor(value)))
    refuse("a whole number from 0");
  if (option.form == actors::option_form::flag && value != 0 && value != 1) refuse("True or False");
  if (option.above && !(value > *option.above)) refuse(fmt::format("more than {}", *option.above));
  if (option.at_least && !(value >= *option.at_least))
    refuse(fmt::format("at least {}", *option.at_least));
  if (option.at_most && !(value <= *option.at_most))
    refuse(fmt::format("at most {}", *option.at_most));
}

py::array aggregate(const std::string& name, const py::object& values, const py::object& weights,
                    const std::map<std::string, double>& options, std::uint64_t seed,
                    const py::object& out) {
  const auto* found = actors::aggregators().find(name);
  if (found == nullptr)
    throw py::value_error(fmt::format("there is no aggregator '{}'; there are {}", name,
                                      actors::aggregators().names()));
  actors::aggregation_setting setting{&found->options, {}, 0, 0, seed};
  for (const auto& [key, value] : options) {
    const auto option = std::find_if(found->options.begin(), found->options.end(),
                                     [&](const auto& one) { return one.name == key; });
    if (option == found->options.end())
      throw py::type_error(fmt::format("the aggregator '{}' has no option '{}'", name, key));
    check_option(*option, value);
    setting.chosen[key] = value;
  }
  const contributions from(values, weights);
  if (from.size == 0) throw py::value_error("values[0] is empty");
  auto [array, into] = target(out, from.size);
  from.must_not_overlap(into);
  setting.round_values = from.size;
  std::vector<std::uint64_t> counts;
  for (const auto& each : from.all)
    counts.push_back(static_cast<std::uint64_t>(std::clamp(std::ceil(each.weight), 1.0, 9e15)));
  std::optional<std::uint32_t> bad;
  {
    const py::gil_scoped_release unlocked;
    const auto made = found->make(setting);
    made->open(from.size, counts);
    for (std::size_t i = 0; i < from.all.size(); ++i)
      made->add(static_cast<std::uint32_t>(i), from.all[i].weight, from.all[i].values);
    bad = made->close(into);
  }
  raise_kept();
  if (bad) not_finite(*bad);
  return array;
}

// -- codecs ---------------------------------------------------------------------------------------

kernels::codec codec_of(const std::string& name) {
  if (name == kernels::to_string(kernels::codec::top_k)) return kernels::codec::top_k;
  const auto found = kernels::parse_codec(name);
  if (!found) throw py::value_error(found.error() + ", top_k");
  return *found;
}

double checked_fraction(double value) {
  if (!(value > 0 && value <= 1))
    throw py::value_error(fmt::format("fraction is {}, expected above 0 and at most 1", value));
  return value;
}

py::array encode(const std::string& name, const py::object& values, double fraction) {
  const auto which = codec_of(name);
  const auto from = floats(values, "values");
  if (from.size() > most_values) throw py::value_error("values has more than 2^31 values");
  checked_fraction(fraction);
  if (which == kernels::codec::top_k) {
    if (from.empty()) throw py::value_error("values is empty: top_k keeps one value at least");
    const auto made = kernels::vector_codec(which, {}, fraction).encode(0, from);
    if (!made) throw py::value_error(made.error());
    py::array_t<std::uint8_t> out(static_cast<py::ssize_t>(made->size()));
    std::memcpy(out.mutable_data(), made->data(), made->size());
    return out;
  }
  py::array_t<std::uint8_t> out(
      static_cast<py::ssize_t>(kernels::encoded_bytes(which, from.size())));
  const std::span bytes(reinterpret_cast<std::byte*>(out.mutable_data()),
                        static_cast<std::size_t>(out.size()));
  const auto done = kernels::encode_into(which, from, bytes);
  if (!done) throw py::value_error(done.error());
  return out;
}

py::array decode(const std::string& name, const py::object& code, std::optional<std::size_t> count,
                 const py::object& out) {
  const auto which = codec_of(name);
  if (!py::isinstance<py::array_t<std::uint8_t>>(code))
    throw py::type_error("code is not a NumPy array of uint8, as encode() returns");
  const auto array = py::reinterpret_borrow<py::array>(code);
  if (array.ndim() != 1 || (array.flags() & py::array::c_style) == 0)
    throw py::value_error("code is not contiguous, or has more than one dimension");
  const std::span bytes(static_cast<const std::byte*>(array.data()),
                        static_cast<std::size_t>(array.size()));
  if (!count) {
    if (out.is_none()) throw py::type_error("decode() needs count, or an array out");
    count = floats(out, "out").size();
  }
  if (*count > most_values) throw py::value_error("count is above 2^31");
  if (which != kernels::codec::top_k && bytes.size() != kernels::encoded_bytes(which, *count))
    throw py::value_error(fmt::format("code has {} bytes, but {} values in {} take {}",
                                      bytes.size(), *count, name,
                                      kernels::encoded_bytes(which, *count)));
  auto [result, into] = target(out, *count);
  const auto done = which == kernels::codec::top_k
                        ? kernels::vector_codec(which).decode(0, bytes, into)
                        : kernels::decode(which, bytes, into);
  if (!done) throw py::value_error(done.error());
  return result;
}

py::dict codec_facts(const std::string& name, std::size_t count) {
  const auto which = codec_of(name);
  if (count > most_values) throw py::value_error("count is above 2^31");
  py::dict out;
  if (which == kernels::codec::top_k)
    throw py::value_error("top_k has no fixed size and no bound: it drops values");
  out["bytes"] = kernels::encoded_bytes(which, count);
  out["largest_loss"] = kernels::largest_loss(which);
  out["largest_value"] = kernels::largest_value(which);
  return out;
}

std::vector<std::string> codecs() {
  std::vector<std::string> out;
  for (const auto each : kernels::all_codecs) out.emplace_back(kernels::to_string(each));
  out.emplace_back(kernels::to_string(kernels::codec::top_k));
  return out;
}

// -- shares and theory ----------------------------------------------------------------------------

py::array part_boundaries(std::uint64_t length, const py::object& shares, std::uint64_t align) {
  const auto given = numbers(shares, "shares", most_inputs);
  if (given.empty() || !kernels::valid_shares(given))
    throw py::value_error("shares: expected finite numbers from 0, and one above 0");
  if (align == 0) throw py::value_error("align is 0, expected 1 or more");
  if (length > (std::uint64_t{1} << 62)) throw py::value_error("length is above 2^62");
  const auto made = kernels::part_boundaries(length, given, align);
  return py::array_t<std::uint64_t>(static_cast<py::ssize_t>(made.size()), made.data());
}

py::array balanced_shares(const py::object& rates) {
  const auto given = numbers(rates, "rates", most_inputs);
  if (given.empty() || !kernels::valid_shares(given))
    throw py::value_error("rates: expected finite numbers from 0, and one above 0");
  const auto made = kernels::balanced_shares(given);
  return py::array_t<double>(static_cast<py::ssize_t>(made.size()), made.data());
}

kernels::grid grid_of(const std::string& text) {
  const auto made = kernels::parse_grid(text);
  if (!made) throw py::value_error(made.error());
  return *made;
}

double least(double value, double from, const char* what) {
  if (!(value >= from && value <= 1e15))
    throw py::value_error(
        fmt::format("{} is {}, expected a number from {} to 1e15", what, value, from));
  return value;
}

} // namespace

void add_kernels(py::module_& to) {
  const auto none = py::none();
  to.def("weighted_mean", &weighted_mean, py::arg("values"), py::arg("weights") = none,
         py::arg("out") = none);
  to.def("aggregators", &aggregators);
  to.def("aggregate", &aggregate, py::arg("name"), py::arg("values"), py::arg("weights"),
         py::arg("options"), py::arg("seed"), py::arg("out"));
  to.def("codecs", &codecs);
  to.def("encode", &encode, py::arg("codec"), py::arg("values"), py::arg("fraction") = 0.01);
  to.def("decode", &decode, py::arg("codec"), py::arg("code"), py::arg("count") = none,
         py::arg("out") = none);
  to.def("codec_facts", &codec_facts, py::arg("codec"), py::arg("count"));
  to.def("part_boundaries", &part_boundaries, py::arg("length"), py::arg("shares"),
         py::arg("align") = 1);
  to.def("balanced_shares", &balanced_shares, py::arg("rates"));
  to.def(
      "random_groups_factor",
      [](double peers, double groups) {
        least(peers, 2, "peers");
        return kernels::random_groups_factor(peers, least(groups, 1, "groups"));
      },
      py::arg("peers"), py::arg("groups"));
  to.def(
      "full_grid_distortion",
      [](const std::string& grid, std::uint64_t rounds) {
        return kernels::full_grid_distortion(grid_of(grid), rounds);
      },
      py::arg("grid"), py::arg("rounds"));
  to.def(
      "all_reduce_rounds",
      [](double peers, double failure, double limit) {
        least(peers, 1, "peers");
        if (!(failure >= 0 && failure <= 1))
          throw py::value_error(
              fmt::format("failure is {}, expected a share from 0 to 1", failure));
        return kernels::all_reduce_rounds(peers, failure, least(limit, 1, "limit"));
      },
      py::arg("peers"), py::arg("failure"), py::arg("limit"));
  to.def(
      "pair_factor", [](double peers) { return kernels::pair_factor(least(peers, 2, "peers")); },
      py::arg("peers"));
}

} // namespace shoal::python
