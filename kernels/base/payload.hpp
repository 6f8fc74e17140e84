// An immutable, shared byte buffer in which tensors travel. Copies and slices share memory. So a
// payload is a pointer inside a process and raw bytes between processes. It always knows its size
// on the wire. A size-only payload has a size and no bytes (workload 'timing').
// Thread safety: immutable after construction, may be shared between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shoal {

class payload {
public:
  payload() = default;
  /// Takes over `bytes`.
  explicit payload(std::vector<std::byte> bytes);
  /// Takes over `values` and presents them as bytes in the machine's order (little-endian hosts
  /// only).
  explicit payload(std::vector<float> values);
  /// A payload of `size` bytes without content.
  static payload size_only(std::size_t size);
  /// Shows `bytes`, which `owner` keeps alive.
  static payload shared(std::shared_ptr<const void> owner, std::span<const std::byte> bytes);

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  bool is_size_only() const noexcept { return size_ != 0 && data_ == nullptr; }

  /// Requires: not size-only.
  std::span<const std::byte> bytes() const;
  /// The bytes as floats. Requires: not size-only, size() % 4 == 0, 4-byte aligned. Whole payloads
  /// that were made from floats are aligned, and so are their slices at multiples of 4.
  std::span<const float> floats() const;

  /// Shares memory. Requires: offset + count <= size().
  payload slice(std::size_t offset, std::size_t count) const;

  /// True if both show the same memory (or are size-only payloads of equal size).
  bool same_memory(const payload& other) const noexcept {
    return data_ == other.data_ && size_ == other.size_;
  }
  /// True if both hold the same bytes, or are size-only payloads of equal size. A comparison takes
  /// about a tenth of the time of a hash.
  bool operator==(const payload& other) const noexcept;

private:
  friend class float_buffer;
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A serializer that takes large payloads as they are, beside the bytes that it writes. Payloads
/// recognize one by a cast.
class payload_sink {
public:
  virtual ~payload_sink() = default;
  virtual void take(const payload& what) = 0;
};

/// A deserializer that holds payloads beside its bytes.
class payload_source {
public:
  virtual ~payload_source() = default;
  /// The next payload, of `size` bytes. Returns false if there is none.
  virtual bool give(std::size_t size, bool size_only, payload& into) = 0;
};

/// A payload of at least this many bytes goes to a payload_sink. A smaller one is written like
/// other data.
inline constexpr std::size_t beside_bytes = 4096;

/// Memory for floats that are written piece by piece. Each piece travels in a payload as soon as it
/// is written. The memory is not zeroed, and has huge pages where the system gives them: for large
/// vectors that is most of the cost.
/// Requires: the owner writes no element after a payload shows it. Thread safety: as that of a
/// vector.
class float_buffer {
public:
  float_buffer() = default;
  explicit float_buffer(std::size_t count);
  bool empty() const noexcept { return size_ == 0; }
  std::span<float> floats() noexcept { return {data_.get(), size_}; }
  /// `count` bytes from `offset`, both multiples of 4. The payload shares the whole memory.
  /// Requires: the bytes are within it.
  payload slice(std::size_t offset, std::size_t count) const;

private:
  std::shared_ptr<float> data_;
  std::size_t size_ = 0;
};

} // namespace shoal
