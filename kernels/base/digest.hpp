// BLAKE2b-256 (RFC 7693, by libsodium): event hashes, state ids, chunk checks.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace shoal {

struct digest {
  std::array<std::uint8_t, 32> bytes{};
  auto operator<=>(const digest&) const = default;
  bool is_zero() const noexcept { return *this == digest{}; }
  /// 64 lower-case hexadecimal digits.
  std::string hex() const;
  /// The first eight bytes, little-endian; enough to tell things apart in logs and maps.
  std::uint64_t prefix() const noexcept;
};

/// Accumulates bytes; finish() once.
class hasher {
public:
  hasher();
  ~hasher();
  hasher(hasher&&) noexcept;
  hasher& operator=(hasher&&) noexcept;

  hasher& add(std::span<const std::byte> bytes);
  hasher& add(std::string_view text); ///< the length is hashed too
  template <class T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) hasher& add(T value) {
    return add(std::as_bytes(std::span<const T, 1>(&value, 1)));
  }
  hasher& add(const digest& value) { return add(std::as_bytes(std::span(value.bytes))); }
  /// The digest of the bytes so far. More bytes may be added afterwards.
  digest current() const;
  digest finish() { return current(); }

private:
  struct state;
  std::unique_ptr<state> state_;
};

digest hash_of(std::span<const std::byte> bytes);

} // namespace shoal
