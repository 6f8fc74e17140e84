// Threads that do the actual computing while virtual time goes on. Each is single-threaded inside
// (two BLAS threads were three times slower and change the bits), so results do not depend on how
// many there are.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace shoal::scenarios {

class compute_pool {
public:
  /// `prepare` runs once in each thread. Without threads work is done by who submits it: for work
  /// that takes no time.
  compute_pool(unsigned threads, std::function<void()> prepare);
  /// Finishes what is running, drops what is waiting.
  ~compute_pool();
  compute_pool(const compute_pool&) = delete;

  /// First come, first served.
  std::shared_future<void> submit(std::function<void()> work);

private:
  void serve(const std::function<void()>& prepare);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> waiting_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

} // namespace shoal::scenarios
