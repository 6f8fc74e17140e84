// The threads that wait for sockets. A process has a few of them, which all its pipes and listeners
// share. They live as long as the process.
#pragma once

#include "kernels/base/descriptor.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace shoal::netem::wire {

/// An object that waits for a socket.
class io_client {
public:
  virtual ~io_client() = default;
  /// The socket can be read or written, or has failed. Runs on the loop's thread.
  virtual void ready() = 0;
};

class io_loop {
public:
  using clock = std::chrono::steady_clock;

  /// The loops of this process, in turn.
  static io_loop& next();

  io_loop(const io_loop&) = delete;
  /// Runs `work` on the loop's thread, after all that was posted before. Thread safety: all.
  void post(std::function<void()> work);
  /// True on the thread of any loop.
  static bool is_on_a_loop() noexcept;

  // -- only on the loop's thread ----

  /// Calls who->ready() while a socket is ready for `events`, as epoll names them. A second call
  /// for the same socket changes its events; none: the socket is left alone. Keeps `who` alive
  /// until forget().
  void watch(int socket, std::uint32_t events, const std::shared_ptr<io_client>& who);
  void forget(int socket);
  void at(clock::time_point when, std::function<void()> work);

private:
  io_loop();
  void run();
  void do_posted();

  struct watched {
    std::uint32_t events = 0, generation = 0;
    std::shared_ptr<io_client> who;
  };
  const descriptor poll_, bell_;
  std::unordered_map<int, watched> watched_;
  std::uint32_t generation_ = 0;
  std::multimap<clock::time_point, std::function<void()>> timers_;
  std::mutex mutex_; // guards the next two
  std::vector<std::function<void()>> posted_;
  bool awake_ = false;
  std::thread thread_;
};

} // namespace shoal::netem::wire
