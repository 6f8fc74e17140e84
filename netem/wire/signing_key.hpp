// An Ed25519 key, the identity of a node or the moderator. It signs texts under that name, such as
// the record of a peer's contribution.
// Source: RFC 8032 (the signature), RFC 8410 (the key as PKCS #8).
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/secret_text.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

struct evp_pkey_st;

namespace shoal::netem::wire {

using public_key_bytes = std::array<std::byte, 32>;
using signature_bytes = std::array<std::byte, 64>;

/// Thread safety: const members may be called from several threads.
class signing_key {
public:
  /// Makes a key from the system's source of randomness.
  static signing_key make();
  /// Reads a key from PEM ('PRIVATE KEY'). Errors: no such block, encrypted, damaged, another type
  /// of key.
  static result<signing_key> read(std::string_view pem);

  const public_key_bytes& public_key() const noexcept { return public_key_; }
  /// Signs bytes. Equal bytes give equal signatures. `bytes` must begin with their type, since a
  /// node's key also signs TLS handshakes and certificate requests. The type keeps a signature of
  /// one kind from passing as a signature of another kind.
  signature_bytes sign(std::span<const std::byte> bytes) const;
  secret_text pem() const;

  /// OpenSSL's key, for the certificate files only.
  evp_pkey_st* handle() const noexcept { return key_.get(); }

private:
  explicit signing_key(evp_pkey_st* key);
  std::shared_ptr<evp_pkey_st> key_; // OpenSSL wipes it with the last owner
  public_key_bytes public_key_{};
};

/// True if the owner of `public_key` made `signature` for `bytes`. Accepts any input, including a
/// signature of another length.
bool verify(const public_key_bytes& public_key, std::span<const std::byte> bytes,
            std::span<const std::byte> signature);

} // namespace shoal::netem::wire
