// Where a data shard takes the bytes of its samples from. What the bytes mean is the workload's
// affair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::actors {

/// Sample `index` exists for every index: a source over a finite corpus goes round or draws with
/// the index as its seed, and must give the same bytes for the same index every time.
class sample_source {
public:
  virtual ~sample_source() = default;

  /// The size of every sample, above 0.
  virtual std::uint32_t sample_bytes() const = 0;
  /// Fills `out`, of sample_bytes() bytes. Not called if is_size_only().
  virtual void read(std::uint64_t index, std::span<std::byte> out) const = 0;
  /// True if samples have a size and no content (workload 'timing').
  virtual bool is_size_only() const { return false; }
};

} // namespace shoal::actors
