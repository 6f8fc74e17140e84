#include "kernels/base/payload.hpp"

#include "kernels/base/check.hpp"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace shoal {

static_assert(std::endian::native == std::endian::little,
              "payload shows floats as the bytes of a little-endian machine");

payload::payload(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  data_ = owner->data();
  size_ = owner->size();
  owner_ = std::move(owner);
}

payload::payload(std::vector<float> values) {
  auto owner = std::make_shared<const std::vector<float>>(std::move(values));
  const auto bytes = std::as_bytes(std::span(*owner));
  data_ = bytes.data();
  size_ = bytes.size();
  owner_ = std::move(owner);
}

payload payload::size_only(std::size_t size) {
  payload out;
  out.size_ = size;
  return out;
}

payload payload::shared(std::shared_ptr<const void> owner, std::span<const std::byte> bytes) {
  payload out;
  out.owner_ = std::move(owner);
  out.data_ = bytes.data();
  out.size_ = bytes.size();
  return out;
}

std::span<const std::byte> payload::bytes() const {
  SHOAL_CHECK(!is_size_only(), "a size-only payload has no bytes");
  return {data_, size_};
}

bool payload::operator==(const payload& other) const noexcept {
  if (size_ != other.size_) return false;
  if (size_ == 0 || data_ == other.data_) return true;
  return data_ && other.data_ && std::memcmp(data_, other.data_, size_) == 0;
}

std::span<const float> payload::floats() const {
  SHOAL_CHECK(!is_size_only(), "a size-only payload has no floats");
  SHOAL_CHECK(size_ % sizeof(float) == 0, "the payload is not a whole number of floats");
  SHOAL_CHECK(reinterpret_cast<std::uintptr_t>(data_) % alignof(float) == 0,
              "the payload is not aligned for floats");
  return {reinterpret_cast<const float*>(data_), size_ / sizeof(float)};
}

payload payload::slice(std::size_t offset, std::size_t count) const {
  SHOAL_CHECK(offset <= size_ && count <= size_ - offset, "the slice leaves the payload");
  payload out;
  out.size_ = count;
  if (data_ != nullptr) {
    out.owner_ = owner_;
    out.data_ = data_ + offset;
  }
  return out;
}

float_buffer::float_buffer(std::size_t count) : size_(count) {
  constexpr std::size_t huge = 2 << 20;
  if (count == 0) return;
  const std::size_t bytes = 4 * count;
  void* memory = nullptr;
  if (bytes < 2 * huge) {
    memory = std::malloc(bytes);
  } else {
    const std::size_t whole = (bytes + huge - 1) / huge * huge;
    memory = std::aligned_alloc(huge, whole);
#ifdef MADV_HUGEPAGE
    // This is only advice. Pages are small without it, or where the system ignores it.
    if (memory != nullptr) (void)madvise(memory, whole, MADV_HUGEPAGE);
#endif
  }
  if (memory == nullptr) throw std::bad_alloc{};
  data_ = std::shared_ptr<float>(static_cast<float*>(memory), [](float* p) { std::free(p); });
}

payload float_buffer::slice(std::size_t offset, std::size_t count) const {
  SHOAL_CHECK(offset % 4 == 0 && offset <= 4 * size_ && count <= 4 * size_ - offset,
              "a slice of the buffer");
  payload out;
  out.owner_ = data_;
  out.data_ = reinterpret_cast<const std::byte*>(data_.get()) + offset;
  out.size_ = count;
  return out;
}

} // namespace shoal
