#include "tools/python/runs.hpp"

#include "kernels/base/units.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/page/run_facts.hpp"
#include "scenarios/page/run_reader.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/record/study_directory.hpp"
#include "scenarios/runner/runner.hpp"
#include "scenarios/schema/load.hpp"
#include "tools/build_identity.hpp"
#include "tools/outcome_files.hpp"
#include "tools/python/callbacks.hpp"
#include "tools/python/errors.hpp"
#include "tools/python/run_tables.hpp"
#include "tools/python/scenario_text.hpp"
#include "tools/run_page.hpp"

#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shoal::python {

using namespace scenarios;

namespace {

/// An array that owns the memory of `values`.
template <class T>
py::array to_array(std::vector<T> values) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  const auto size = owner->size();
  const auto* data = owner->data();
  const py::capsule frees(owner.get(), [](void* it) { delete static_cast<std::vector<T>*>(it); });
  static_cast<void>(owner.release()); // the capsule deletes them
  return py::array_t<T>({size}, {sizeof(T)}, data, frees);
}

/// A column of numbers is an array. A column of words is the pair of its codes and its words.
py::object to_python(column from) {
  if (auto* numbers = std::get_if<std::vector<double>>(&from.values))
    return to_array(std::move(*numbers));
  if (auto* counts = std::get_if<std::vector<std::uint64_t>>(&from.values))
    return to_array(std::move(*counts));
  auto& texts = std::get<words>(from.values);
  return py::make_tuple(to_array(std::move(texts.codes)), py::cast(texts.names));
}

py::dict to_python(std::vector<table> from) {
  py::dict out;
  for (auto& each : from) {
    py::dict columns;
    for (auto& one : each.columns) {
      const py::str name(one.name);
      columns[name] = to_python(std::move(one));
    }
    out[py::str(each.name)] = std::move(columns);
  }
  return out;
}

/// The options of a run, from the keywords of `shoal.run`.
struct run_options {
  std::string out;
  bool force = false, baseline = true, report = true, transfers = false;
  std::optional<duration> until;
  unsigned workers = 0;
  py::object progress; ///< a function, or None
};

py::dict status_of(const live_status& what) {
  const auto known = [](const std::optional<double>& value) {
    return value ? py::object(py::float_(*value)) : py::none();
  };
  py::dict out;
  out["doing"] = what.doing;
  out["time"] = to_seconds(what.progress.time);
  out["wall_seconds"] = what.wall_seconds;
  out["stop_time"] = to_seconds(what.stop_time);
  out["epoch"] = what.progress.epoch;
  out["epochs"] = what.epochs_target;
  out["samples"] = what.progress.samples;
  out["loss_train"] = known(what.progress.train_loss);
  out["loss_held_out"] = known(what.progress.held_out_loss);
  out["peers_alive"] = what.progress.peers_alive;
  out["rounds_ok"] = what.rounds.of(actors::outcome::ok);
  out["rounds_partial"] = what.rounds.of(actors::outcome::partial);
  out["rounds_split"] = what.rounds.of(actors::outcome::split);
  out["rounds_failed"] = what.rounds.of(actors::outcome::failed);
  return out;
}

template <class Function>
class finally {
public:
  explicit finally(Function function) : function_(std::move(function)) {}
  ~finally() { function_(); }
  finally(const finally&) = delete;

private:
  Function function_;
};

/// Calls `what` without the interpreter's lock. Throws the first exception of a call into Python,
/// else run_failed for an exception of `what`.
void unlocked(const std::function<void()>& what) {
  std::optional<std::string> error;
  {
    const py::gil_scoped_release lock;
    try {
      what();
    } catch (const std::exception& thrown) {
      error = thrown.what();
    }
  }
  raise_kept();
  if (error) throw run_failed(*error);
}

/// Calls the user's function, if there is one. A result of False, and only that, ends the run.
class teller {
public:
  explicit teller(py::object function) : function_(std::move(function)) {}

  template <class Make>
  void tell(Make what) {
    if (function_.is_none() || stopped_) return;
    call_python([&] { stopped_ = function_(what()).is(py::bool_(false)); });
  }
  bool ends() { return stopped_ || wants_end(); }

private:
  py::object function_;
  bool stopped_ = false;
};

py::dict run_training(scenario what, const run_options& options) {
  // As in the program, transfers are recorded for a run directory, because they take time.
  if (!options.transfers && options.out.empty()) what.record.transfers = 0;
  const auto most_transfers = what.record.transfers;
  teller tells(options.progress);
  runner_options how;
  how.out = options.out;
  how.force = options.force;
  how.threads = options.workers;
  how.build = tools::build_identity();
  how.baseline = options.baseline;
  how.until = options.until;
  if (!options.progress.is_none())
    how.on_status = [&](const live_status& status) {
      tells.tell([&] { return status_of(status); });
    };
  how.interrupted = [&] { return tells.ends(); };

  std::unique_ptr<tools::run_page> page;
  result<std::unique_ptr<runner>> made = failure{""};
  result<run_outcome> outcome = failure{""};
  std::string no_report;
  std::optional<run_tables> tables;
  unlocked([&] {
    if (!options.out.empty() && options.report) {
      auto opened = tools::run_page::open({}, options.out);
      if (opened) page = std::move(*opened);
      if (page) page->attach(how);
    }
    tables.emplace(most_transfers, how.listener);
    how.listener = &*tables;
    made = runner::prepare(std::move(what), std::move(how));
    // The runner ends here, because its threads may wait for the interpreter's lock.
    const finally ends([&] {
      if (made) made->reset();
    });
    if (made) outcome = (*made)->run();
    if (outcome && page) no_report = page->finish();
  });
  if (!made) throw bad_scenario(made.error());
  if (!outcome) throw run_failed(outcome.error());

  py::dict out;
  out["summary"] = to_json(outcome->summary);
  out["tables"] = to_python(tables->take());
  out["missed"] = outcome->missed;
  out["interrupted"] = outcome->interrupted;
  out["text_prompt"] = outcome->text_prompt;
  out["text_before"] = outcome->text_before;
  out["text_after"] = outcome->text_after;
  out["late_excess"] = outcome->late.excess();
  out["no_report"] = no_report;
  out["printed"] = scenarios::table(outcome->summary);
  return out;
}

/// The curves of a study, by chart, panel and curve.
py::dict to_python(const std::vector<std::pair<std::string, outcome_chart>>& charts) {
  py::dict out;
  for (const auto& [name, chart] : charts) {
    py::list panels;
    for (const auto& panel : chart.panels) {
      py::dict curves;
      for (const auto& curve : panel.curves) curves[py::str(curve.name)] = to_array(curve.values);
      panels.append(py::make_tuple(panel.title, std::move(curves)));
    }
    out[py::str(name)] = std::move(panels);
  }
  return out;
}

/// Runs a program that does without the runner.
py::dict run_alone(const scenario& what, const run_options& options) {
  const auto& program = what.program.definition();
  if (options.until)
    throw py::value_error("'until' is for training runs; this scenario is " + program.title);
  std::optional<run_directory> directory;
  if (!options.out.empty()) {
    if (auto free = run_directory::check_free(options.out, options.force); !free)
      throw bad_scenario(free.error());
    auto made = run_directory::create(options.out, options.force);
    if (!made) throw run_failed(made.error());
    directory = std::move(*made);
  }
  teller tells(options.progress);
  std::string printed;
  program_hooks hooks;
  hooks.progress = [&](const program_progress& now) {
    tells.tell([&] {
      py::dict status;
      status["doing"] = now.doing;
      if (now.share) status["share"] = *now.share;
      return status;
    });
    return !tells.ends();
  };
  hooks.print = [&](const std::string& text) { printed += text; };
  result<program_outcome> outcome = failure{""};
  std::optional<failure> not_kept;
  unlocked([&] {
    outcome = program.run(what, hooks);
    if (outcome && directory)
      if (auto kept = tools::keep_run(*directory, what, *outcome, printed, tools::build_identity());
          !kept)
        not_kept = failure{kept.error()};
  });
  if (!outcome) throw run_failed(outcome.error());
  if (not_kept) throw run_failed(not_kept->message);
  py::dict out;
  out["summary"] = outcome->summary;
  out["curves"] = to_python(outcome->charts);
  out["missed"] = outcome->errors;
  out["interrupted"] = outcome->stopped;
  out["printed"] = printed + (outcome->closing.empty() ? "" : "\n" + outcome->closing);
  return out;
}

py::dict run(const std::optional<std::string>& text, const std::string& file_name,
             const std::vector<std::string>& sets, const std::string& out, bool force,
             const std::string& until, bool baseline, bool report, bool transfers, unsigned workers,
             py::object progress) {
  const only_run guard;
  run_options options{out, force, baseline, report, transfers, {}, workers, std::move(progress)};
  if (!until.empty()) {
    const auto time = parse_duration(until);
    if (!time) throw py::value_error("until: " + time.error());
    options.until = *time;
  }
  if (workers > 1024) throw py::value_error("workers: at most 1024");
  auto loaded = text ? load_text(*text, file_name, sets) : load(file_name, sets);
  if (!loaded.value) {
    py::dict failed;
    failed["errors"] = diagnostics(loaded.errors);
    return failed;
  }
  const bool training = loaded.value->program.definition().on_runner();
  auto done = training ? run_training(std::move(*loaded.value), options)
                       : run_alone(*loaded.value, options);
  done["warnings"] = diagnostics(loaded.warnings);
  return done;
}

py::dict open_run(const std::string& directory) {
  const std::filesystem::path place(directory);
  std::error_code error;
  if (!std::filesystem::is_directory(place, error))
    throw bad_scenario(fmt::format("there is no run directory '{}'", directory));
  auto yaml = read_file(place / "run.yaml");
  if (!yaml)
    throw bad_scenario(fmt::format("there is no run in '{}': {}", directory, yaml.error()));
  py::dict out;
  const auto summary = read_file(place / "summary.json");
  out["summary"] = summary ? py::object(py::str(*summary)) : py::none();
  out["run_yaml"] = *yaml;
  if (!require_history(place, "tables of a run")) return out;
  run_tables tables(~std::uint64_t{0});
  std::vector<std::string> notes;
  result<void> told;
  unlocked([&] {
    told = tell_directory(place, facts_of(*yaml), tables,
                          [&](std::string note) { notes.push_back(std::move(note)); });
  });
  if (!told) throw bad_scenario(told.error());
  out["tables"] = to_python(tables.take());
  out["notes"] = notes;
  return out;
}

} // namespace

void add_runs(py::module_& to) {
  to.def("run", &run, py::arg("text"), py::arg("file_name"), py::arg("sets"), py::arg("out"),
         py::arg("force"), py::arg("until"), py::arg("baseline"), py::arg("report"),
         py::arg("transfers"), py::arg("workers"), py::arg("progress"));
  to.def("open_run", &open_run, py::arg("directory"));
}

} // namespace shoal::python
