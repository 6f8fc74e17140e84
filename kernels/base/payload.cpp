#include "kernels/base/payload.hpp"

#include "kernels/base/check.hpp"

#include <bit>
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

payload payload::hollow(std::size_t size) {
  payload out;
  out.size_ = size;
  return out;
}

std::span<const std::byte> payload::bytes() const {
  SHOAL_CHECK(!is_hollow(), "a hollow payload has no bytes");
  return {data_, size_};
}

std::span<const float> payload::floats() const {
  SHOAL_CHECK(!is_hollow(), "a hollow payload has no floats");
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

} // namespace shoal
