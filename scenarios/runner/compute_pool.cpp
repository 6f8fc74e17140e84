#include "scenarios/runner/compute_pool.hpp"

namespace shoal::scenarios {

compute_pool::compute_pool(unsigned threads, std::function<void()> prepare) {
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this, prepare] { serve(prepare); });
}

compute_pool::~compute_pool() {
  {
    std::lock_guard guard(mutex_);
    closing_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

std::shared_future<void> compute_pool::submit(std::function<void()> work) {
  std::packaged_task<void()> task(std::move(work));
  auto done = task.get_future().share();
  if (threads_.empty()) return task(), done;
  {
    std::lock_guard guard(mutex_);
    waiting_.push_back(std::move(task));
  }
  changed_.notify_one();
  return done;
}

void compute_pool::serve(const std::function<void()>& prepare) {
  if (prepare) prepare();
  for (;;) {
    std::packaged_task<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
      if (closing_) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    task();
  }
}

} // namespace shoal::scenarios
