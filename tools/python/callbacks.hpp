// Calls from the run into Python. A run holds no lock of the interpreter, so each call takes it.
// The first exception of a call is kept: the run then ends, and the exception is raised again.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <string>

namespace shoal::python {

namespace py = pybind11;

/// True if an exception waits to be raised. Thread safety: all.
bool callback_failed() noexcept;

/// Calls `what` with the interpreter's lock, and keeps its exception. Returns false if there was
/// one. If one is kept already, the call does nothing and returns false. Thread safety: all.
bool call_python(const std::function<void()>& what);

/// Raises the kept exception, if there is one. Requires: the interpreter's lock.
void raise_kept();

/// Forgets the kept exception, and returns its text. Requires: the interpreter's lock, and that an
/// exception is kept.
std::string take_kept();

/// True if the user wants the run to end: a signal, such as Ctrl-C, has raised an exception, or a
/// call has. Thread safety: all.
bool wants_end();

/// One run at a time: a run changes what all runs in a process share, such as the threads of the
/// libraries for linear algebra. Throws if another run is in progress.
class only_run {
public:
  only_run();
  ~only_run();
  only_run(const only_run&) = delete;
  static bool in_progress() noexcept;
};

} // namespace shoal::python
