// A loop whose iterations do not depend on each other, on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace shoal {

/// Calls work(i) once for each i below `count`, and returns after the last call. The calling thread
/// is one of the `threads` (0 counts as 1). Requires: calls that do not depend on their order, and
/// throw nothing.
template <class Work>
void in_parallel(std::size_t count, std::size_t threads, Work work) {
  std::atomic<std::size_t> next{0};
  const auto some = [&] {
    for (auto i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < std::min(threads, count); ++t) others.emplace_back(some);
  some();
}

} // namespace shoal
