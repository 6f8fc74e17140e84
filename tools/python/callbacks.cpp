#include "tools/python/callbacks.hpp"

#include <atomic>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

namespace shoal::python {

namespace {

std::atomic<bool> failed{false};
std::atomic<bool> running{false};

/// Python's exception, or another one. Guarded by the interpreter's lock. It is never destroyed,
/// because the interpreter ends before static objects do.
struct kept_exception {
  std::optional<py::error_already_set> of_python;
  std::exception_ptr other;
};

kept_exception& kept() {
  static auto* one = new kept_exception;
  return *one;
}

} // namespace

bool callback_failed() noexcept {
  return failed;
}

bool call_python(const std::function<void()>& what) {
  if (failed) return false;
  const py::gil_scoped_acquire lock;
  if (failed) return false;
  try {
    what();
    return true;
  } catch (py::error_already_set& error) {
    kept().of_python.emplace(error);
  } catch (...) {
    kept().other = std::current_exception();
  }
  failed = true;
  return false;
}

void raise_kept() {
  if (!failed) return;
  failed = false;
  auto& all = kept();
  if (all.of_python) {
    auto error = std::move(*all.of_python);
    all.of_python.reset();
    throw error;
  }
  if (auto other = std::exchange(all.other, nullptr)) std::rethrow_exception(other);
}

std::string take_kept() {
  try {
    raise_kept();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

bool wants_end() {
  return !call_python([] {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  });
}

only_run::only_run() {
  if (running.exchange(true))
    throw std::runtime_error("a run is in progress in this process: runs in parallel take a "
                             "process each (multiprocessing)");
}

only_run::~only_run() {
  running = false;
}

bool only_run::in_progress() noexcept {
  return running;
}

} // namespace shoal::python
