// An Ed25519 key: who a node or the moderator is. Signs what is said under that name, such as the
// record of what a peer has contributed.
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
  /// A new one, from the system's source of randomness.
  static signing_key make();
  /// From PEM ('PRIVATE KEY'). Errors: no such block, encrypted, damaged, another type of key.
  static result<signing_key> read(std::string_view pem);

  const public_key_bytes& public_key() const noexcept { return public_key_; }
  /// The same bytes give the same signature. Begin them with what they are: a node's key also signs
  /// TLS handshakes and requests for certificates, and none of these may be taken for another.
  signature_bytes sign(std::span<const std::byte> bytes) const;
  secret_text pem() const;

  /// OpenSSL's key, for the files about certificates.
  evp_pkey_st* handle() const noexcept { return key_.get(); }

private:
  explicit signing_key(evp_pkey_st* key);
  std::shared_ptr<evp_pkey_st> key_; // wiped by OpenSSL with the last owner
  public_key_bytes public_key_{};
};

/// Whether `signature` is that of `bytes` by the owner of `public_key`. Any input is fine, also a
/// signature of another length.
bool verify(const public_key_bytes& public_key, std::span<const std::byte> bytes,
            std::span<const std::byte> signature);

} // namespace shoal::netem::wire
