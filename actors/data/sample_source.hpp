// The bytes of a data shard's samples. The workload defines their meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::actors {

/// Sample `index` exists for every index. A source over a finite corpus wraps around, or draws with
/// the index as its seed. The same index always gives the same bytes.
class sample_source {
public:
  virtual ~sample_source() = default;

  /// The size of every sample; above 0.
  virtual std::uint32_t sample_bytes() const = 0;
  /// Fills `out` [sample_bytes()]. Not called if is_size_only().
  virtual void read(std::uint64_t index, std::span<std::byte> out) const = 0;
  /// True if samples have a size and no content, as in the workload `timing`.
  virtual bool is_size_only() const { return false; }
};

} // namespace shoal::actors
