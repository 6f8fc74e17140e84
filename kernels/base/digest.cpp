#include "kernels/base/digest.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/text_fields.hpp"

#include <sodium.h>

namespace shoal {

std::string digest::hex() const {
  return hex_of(bytes);
}

std::uint64_t digest::prefix() const noexcept {
  std::uint64_t out = 0;
  for (std::size_t i = 8; i-- > 0;) out = out << 8 | bytes[i];
  return out;
}

struct hasher::state {
  crypto_generichash_state blake;
};

hasher::hasher() : state_(std::make_unique<state>()) {
  // Also picks the fastest implementation for this CPU.
  static const bool ready = sodium_init() >= 0;
  SHOAL_CHECK(ready, "libsodium does not start");
  crypto_generichash_init(&state_->blake, nullptr, 0, sizeof(digest::bytes));
}

hasher::~hasher() = default;
hasher::hasher(hasher&&) noexcept = default;
hasher& hasher::operator=(hasher&&) noexcept = default;

hasher& hasher::add(std::span<const std::byte> bytes) {
  SHOAL_CHECK(state_ != nullptr, "this hasher was moved from");
  crypto_generichash_update(&state_->blake, reinterpret_cast<const unsigned char*>(bytes.data()),
                            bytes.size());
  return *this;
}

hasher& hasher::add(std::string_view text) {
  add(static_cast<std::uint64_t>(text.size()));
  return add(std::as_bytes(std::span(text)));
}

digest hasher::current() const {
  SHOAL_CHECK(state_ != nullptr, "this hasher was moved from");
  state copy = *state_;
  digest out;
  crypto_generichash_final(&copy.blake, out.bytes.data(), out.bytes.size());
  return out;
}

digest hash_of(std::span<const std::byte> bytes) {
  return hasher().add(bytes).current();
}

} // namespace shoal
