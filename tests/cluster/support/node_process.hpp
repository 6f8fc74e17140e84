// The built program as processes that live side by side: started, watched, signalled and ended.
// None outlives its object, nor this process.
#pragma once

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

/// For whatever happens within a second on a machine that has nothing else to do.
inline constexpr std::chrono::seconds patience = 60s;

/// Looks again and again; false if it did not come true in time.
bool wait_until(const std::function<bool()>& true_now, std::chrono::milliseconds limit = patience);

/// A TCP port of 127.0.0.1 that nobody listens on, and that no outgoing connection is given by the
/// system.
std::uint16_t free_port();

class node_process {
public:
  /// Starts the program; what it says goes to `folder`/`name`.out and .err. `environment`:
  /// NAME=value, added.
  node_process(const std::filesystem::path& folder, const std::string& name,
               const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment = {});
  ~node_process();
  node_process(const node_process&) = delete;

  std::string out() const;
  std::string err() const;
  /// Waits until it has said `text` on stderr; false if it did not in time, or ended before.
  bool says(const std::string& text, std::chrono::milliseconds limit = patience);

  bool running();
  /// Its exit status, or 1000 + the signal that ended it; nothing if it has not ended in time.
  std::optional<int> wait(std::chrono::milliseconds limit = patience);
  void signal(int number) const;
  /// The most memory that it had in RAM so far. Requires: it runs.
  std::uint64_t peak_memory_bytes() const;

private:
  const std::filesystem::path out_, err_;
  pid_t pid_ = -1;
  std::optional<int> exit_;
};

/// The body of http://127.0.0.1:`port``path`; empty if there was none.
std::string http_get(std::uint16_t port, const std::string& path);

/// Series and their values as a node serves them, `name{label="x"}` as it stands there.
using series = std::map<std::string, double>;
series read_series(const std::string& page);

} // namespace shoal::cluster
