#include "tools/python/python_workload.hpp"

#include "actors/training/optimizer_step.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "scenarios/workloads/workload.hpp"
#include "tools/python/callbacks.hpp"

#include <fmt/format.h>
#include <pybind11/numpy.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>

namespace shoal::python {

using namespace scenarios;

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t most_values = std::size_t{1} << 28;

using float_array = py::array_t<float, py::array::c_style | py::array::forcecast>;
using double_array = py::array_t<double, py::array::c_style | py::array::forcecast>;

/// The class behind a name. It is never destroyed, because the interpreter ends before static
/// objects do.
struct sort_of_workload {
  std::string name;
  py::object factory;
  std::vector<python_option> options;
};

std::map<std::string, sort_of_workload*>& sorts() {
  static auto* all = new std::map<std::string, sort_of_workload*>;
  return *all;
}

/// The options of a scenario, with a value for each option of the class.
struct workload_options {
  const sort_of_workload* of = nullptr;
  std::vector<python_option> chosen;
  bool operator==(const workload_options&) const = default;
};

void describe(option_visitor& v, workload_options& o) {
  for (auto& one : o.chosen)
    std::visit(
        [&](auto& value) {
          v.field(one.name.c_str(), value, "an option of a class in Python",
                  {.hide_default = true});
        },
        one.standard);
}

/// An object of the class, and the sizes that it has. An exception of its methods ends the run, and
/// they return zeros until then, because no exception may leave an actor.
class made_in_python {
public:
  made_in_python(const workload_options& options, std::uint64_t seed) : name_(options.of->name) {
    must([&] {
      py::dict keywords;
      keywords["seed"] = seed;
      for (const auto& one : options.chosen)
        std::visit([&](const auto& value) { keywords[py::str(one.name)] = value; }, one.standard);
      const py::object made = options.of->factory(**keywords);
      for (const char* part : {"initial", "sample", "gradient"})
        if (!py::hasattr(made, part))
          throw py::type_error(fmt::format("the workload '{}' has no {}()", name_, part));
      has_held_out_ = py::hasattr(made, "held_out_loss");
      object_ = keep(made);
      const auto first = array_of<float_array>(made.attr("initial")(), "initial()");
      if (first.ndim() != 1 || first.size() == 0 ||
          static_cast<std::size_t>(first.size()) > most_values)
        throw py::value_error(fmt::format("{}.initial() has the shape {}, expected one dimension",
                                          name_, shape(first)));
      initial_.assign(first.data(), first.data() + first.size());
      const auto sample = array_of<float_array>(made.attr("sample")(0), "sample(0)");
      if (sample.size() == 0 || static_cast<std::size_t>(sample.size()) > most_values)
        throw py::value_error(fmt::format("{}.sample(0) is empty or too long", name_));
      sample_shape_.assign(sample.shape(), sample.shape() + sample.ndim());
      sample_values_ = static_cast<std::size_t>(sample.size());
    });
  }

  std::size_t values() const { return initial_.size(); }
  std::size_t sample_bytes() const { return sizeof(float) * sample_values_; }
  const std::vector<float>& initial() const { return initial_; }

  void sample(std::uint64_t index, std::span<std::byte> out) const {
    std::fill(out.begin(), out.end(), std::byte{});
    call_python([&] {
      const auto made = array_of<float_array>(object_->attr("sample")(index), "sample()");
      if (static_cast<std::size_t>(made.size()) != sample_values_)
        throw py::value_error(fmt::format("{}.sample({}) has the shape {}, unlike sample(0)", name_,
                                          index, shape(made)));
      std::memcpy(out.data(), made.data(), out.size());
    });
  }

  double gradient(std::span<const float> parameters, std::span<const std::byte> samples,
                  std::uint64_t count, std::span<double> sum) const {
    double loss = 0;
    call_python([&] {
      auto shape_of_all = sample_shape_;
      shape_of_all.insert(shape_of_all.begin(), static_cast<py::ssize_t>(count));
      py::array_t<float> all(shape_of_all);
      std::memcpy(all.mutable_data(), samples.data(), samples.size());
      const py::object made = object_->attr("gradient")(copy_of(parameters), all);
      if (!py::isinstance<py::tuple>(made) || py::len(made) != 2)
        throw py::type_error(
            fmt::format("{}.gradient() returned no pair (sum of losses, sum of gradients)", name_));
      const auto pair = py::reinterpret_borrow<py::tuple>(made);
      loss = py::float_(pair[0]);
      const auto gradient = array_of<double_array>(pair[1], "gradient()");
      if (gradient.ndim() != 1 || static_cast<std::size_t>(gradient.size()) != sum.size())
        throw py::value_error(fmt::format("the gradient of {} has the shape {}, expected ({},)",
                                          name_, shape(gradient), sum.size()));
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient.data()[i];
    });
    return loss;
  }

  double held_out_loss(std::span<const float> parameters) const {
    double out = unknown;
    if (has_held_out_)
      call_python([&] { out = py::float_(object_->attr("held_out_loss")(copy_of(parameters))); });
    return out;
  }

private:
  /// Throws if `what` does.
  void must(const std::function<void()>& what) const {
    if (!call_python(what))
      throw std::runtime_error(fmt::format("the workload '{}' raised an exception", name_));
  }
  template <class Array>
  Array array_of(const py::object& from, const char* of) const {
    auto out = Array::ensure(from);
    if (!out) {
      PyErr_Clear();
      throw py::type_error(fmt::format("{}.{} returned no array of numbers", name_, of));
    }
    return out;
  }
  static std::string shape(const py::array& of) { return py::str(py::object(of.attr("shape"))); }
  static py::array copy_of(std::span<const float> values) {
    return py::array_t<float>(static_cast<py::ssize_t>(values.size()), values.data());
  }

  std::string name_;
  kept_object object_;
  std::vector<float> initial_;
  std::vector<py::ssize_t> sample_shape_;
  std::size_t sample_values_ = 0;
  bool has_held_out_ = false;
};

using made_ptr = std::shared_ptr<const made_in_python>;

struct python_work final : actors::workload {
  python_work(made_ptr from, const kernels::optimizer_config& optimizer)
      : made(std::move(from)), how(optimizer) {}
  std::uint64_t value_count() const override { return made->values(); }
  std::uint64_t sample_bytes() const override { return made->sample_bytes(); }
  actors::model_state initial() const override { return actors::fresh_state(how, made->initial()); }
  double accumulate(const actors::model_state& at, std::span<const std::byte> samples,
                    std::uint64_t count, std::span<double> sum) const override {
    return made->gradient(at.parameters.floats(), samples, count, sum);
  }
  actors::model_state step(const actors::model_state& at, const payload& mean) const override {
    return actors::step_from(at, how, mean);
  }
  payload repaired(payload averaged) const override {
    return kernels::repaired_state(how, made->values(), std::move(averaged));
  }
  made_ptr made;
  kernels::optimizer_config how;
};

struct python_source final : actors::sample_source {
  explicit python_source(made_ptr from) : made(std::move(from)) {}
  std::uint32_t sample_bytes() const override {
    return static_cast<std::uint32_t>(made->sample_bytes());
  }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    made->sample(index, out);
  }
  made_ptr made;
};

struct prepared_python final : prepared_workload {
  prepared_python(scenario from, made_ptr object, const kernels::optimizer_config& optimizer)
      : what(std::move(from)), made(std::move(object)),
        does(std::make_shared<const python_work>(made, optimizer)) {}
  std::shared_ptr<const actors::workload> work() const override { return does; }
  std::shared_ptr<const actors::sample_source> source() const override {
    return std::make_shared<const python_source>(made);
  }
  double held_out_loss(const actors::model_state& at) const override {
    return made->held_out_loss(at.parameters.floats());
  }
  result<void> save(const actors::model_state& at, std::uint64_t from,
                    const std::string& to) const override {
    return save_checkpoint(what, does->how, {}, at, from, to);
  }
  std::string sample_text(const actors::model_state&, std::uint64_t) const override { return {}; }
  scenario what;
  made_ptr made;
  std::shared_ptr<const python_work> does;
};

workload_definition definition_of(const sort_of_workload& of, const std::string& meaning) {
  workload_definition out;
  out.name = of.name;
  out.meaning = meaning;
  out.options = options_box::of(workload_options{&of, of.options});
  out.possible = [](const workload_choice& of_which) -> result<void> {
    try {
      const made_in_python made(of_which.as<workload_options>(), 0);
      return {};
    } catch (const std::exception& error) {
      const py::gil_scoped_acquire lock;
      return failure{callback_failed() ? take_kept() : error.what()};
    }
  };
  out.tensors = [](const workload_choice& of_which) {
    return matrix_of(made_in_python(of_which.as<workload_options>(), 0).values(), 1);
  };
  out.fingerprint = [](const workload_choice& of_which) {
    std::string text = of_which.name() + " in Python:";
    for (const auto& one : of_which.as<workload_options>().chosen)
      std::visit([&](const auto& value) { text += fmt::format(" {} {}", one.name, value); },
                 one.standard);
    return text;
  };
  out.prepare = [](const scenario& from, bool) -> result<std::unique_ptr<prepared_workload>> {
    const auto optimizer = optimizer_of(from.training.optimizer);
    if (!optimizer) return failure{optimizer.error()};
    return std::unique_ptr<prepared_workload>{std::make_unique<prepared_python>(
        from,
        std::make_shared<const made_in_python>(from.workload.as<workload_options>(), from.seed),
        *optimizer)};
  };
  return out;
}

} // namespace

void register_workload(const std::string& name, const py::object& factory,
                       const std::string& meaning, const py::dict& options) {
  if (only_run::in_progress())
    throw std::runtime_error("a run is in progress: register before it begins");
  if (!is_plain_name(name))
    throw py::value_error(
        fmt::format("'{}' cannot name a workload: use a-z, 0-9, '_' and '-'", name));
  if (!PyCallable_Check(factory.ptr()))
    throw py::type_error("a workload is a class, or a function that makes an object");
  auto all = options_of(options);
  if (const auto known = sorts().find(name); known != sorts().end()) {
    if (known->second->options != all)
      throw py::value_error(
          fmt::format("'{}' is registered with other options: take another name", name));
    known->second->factory = factory;
    return;
  }
  if (workloads().find(name) != nullptr)
    throw py::value_error(fmt::format("Shoal has a workload '{}' of its own", name));
  auto* made = new sort_of_workload{name, factory, std::move(all)};
  sorts()[name] = made;
  workloads().add(definition_of(*made, meaning));
}

} // namespace shoal::python
