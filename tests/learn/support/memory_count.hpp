// The memory that libtorch takes. This header comes before doctest, because libtorch's logging
// defines CHECK.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#undef CHECK

#include <algorithm>
#include <cstdint>

namespace shoal {

/// Counts what libtorch allocates and frees on this thread.
class memory_count : public c10::MemoryReportingInfoBase {
public:
  void reportMemoryUsage(void*, int64_t size, int64_t, int64_t, c10::Device) override {
    now_ += size;
    peak_ = std::max(peak_, now_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t now() const { return now_; }
  std::int64_t peak() const { return peak_; }

private:
  std::int64_t now_ = 0, peak_ = 0;
};

} // namespace shoal
