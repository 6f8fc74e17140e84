// Threads that run compute jobs while virtual time goes on. Each job uses one thread: two BLAS
// threads were three times slower and changed the result bits. So results do not depend on the
// number of threads.
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
  /// Starts `threads` threads, each of which calls `prepare` once. With 0 threads, submit() runs
  /// the work itself, which suits work that takes no time.
  compute_pool(unsigned threads, std::function<void()> prepare);
  /// Waits for running jobs and drops waiting jobs.
  ~compute_pool();
  compute_pool(const compute_pool&) = delete;

  /// Queues `work`. Threads run jobs in the order of submission.
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
