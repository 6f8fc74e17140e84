// Runs the built program as processes side by side: they are started, observed, signalled and
// ended. No process outlives its object or this program.
#pragma once

#include <doctest/doctest.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace shoal::cluster {

using namespace std::chrono_literals;

/// The time limit for events that take at most a second on an idle machine.
inline constexpr std::chrono::seconds patience = 60s;

/// False under a sanitizer, whose own memory grows with what the program does.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool memory_is_its_own = false;
#else
inline constexpr bool memory_is_its_own = true;
#endif

/// Polls until `true_now` returns true. Returns false if it does not in time.
bool wait_until(const std::function<bool()>& true_now, std::chrono::milliseconds limit = patience);

/// A TCP port of 127.0.0.1 without a listener, outside the range of outgoing connections.
std::uint16_t free_port();

class node_process {
public:
  /// Starts the program. Its output goes to `folder`/`name`.out and .err. `environment` adds
  /// entries of the form NAME=value.
  node_process(const std::filesystem::path& folder, const std::string& name,
               const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment = {});
  ~node_process();
  node_process(const node_process&) = delete;

  std::string out() const;
  std::string err() const;
  /// Waits until the process has written `text` to stderr. Returns false if it did not in time, or
  /// ended before.
  bool says(const std::string& text, std::chrono::milliseconds limit = patience);

  bool running();
  /// The exit status, or 1000 + the signal that ended the process. Nothing if it has not ended in
  /// time.
  std::optional<int> wait(std::chrono::milliseconds limit = patience);
  void signal(int number) const;
  /// The peak of the process's memory in RAM. Requires: the process runs.
  std::uint64_t peak_memory_bytes() const;
  /// The process's memory in RAM now. Requires: the process runs.
  std::uint64_t resident_memory_bytes() const;
  /// The open sockets, those that listen included. Requires: the process runs.
  std::size_t open_sockets() const;

private:
  const std::filesystem::path out_, err_;
  pid_t pid_ = -1;
  std::optional<int> exit_;
};

/// The body of http://127.0.0.1:`port``path`; empty if there was none.
std::string http_get(std::uint16_t port, const std::string& path);

/// The series that a node serves, as `name{label="x"}`, with their values.
using series = std::map<std::string, double>;
series read_series(const std::string& page);

} // namespace shoal::cluster

/// Says in a failed check how a process ended.
template <>
struct doctest::StringMaker<std::optional<int>> {
  static String convert(const std::optional<int>& exit) {
    if (!exit) return "(still runs)";
    const bool by_signal = *exit >= 1000;
    return ((by_signal ? "signal " : "status ") + std::to_string(*exit % 1000)).c_str();
  }
};
