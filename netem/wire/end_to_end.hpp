// Protects the frames of one relayed pipe from the relay. The relay can drop frames. It can neither
// read nor change them, and it cannot speak for one of the two ends.
//
// The first frame of each side is a greeting:
//   a one-time X25519 key, the sender's certificate, the first frame (its hello), and a signature
//   signature = Ed25519("shoal.relayed_link\0" role pipe sender receiver link own_key their_key
//                       BLAKE2b-256(first frame))
// The signature is of the certificate's key, and the key must be the one in the sender's node id.
// The side that dialled sends first, so its greeting has zeros for `their_key`. Later frames are
// sealed with the two keys of crypto_kx, one for each direction. The nonce counts the frames, so a
// frame that is lost, repeated or moved does not open.
// Source: RFC 7748 (X25519), RFC 8032 (Ed25519), RFC 8439 (ChaCha20-Poly1305), all by libsodium.
#pragma once

#include "netem/wire/frames.hpp"
#include "netem/wire/signing_key.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace shoal::netem::wire {

/// The key of this host, and the certificate that the moderator issued for it.
struct own_keys {
  std::shared_ptr<const signing_key> key;
  std::string certificate; ///< PEM
};

/// The two ends of a relayed pipe.
struct relayed_ends {
  node_key own, other;
  std::uint64_t link = 0;
  std::uint8_t which = 0;
  bool dialled = false; ///< by this host
};

/// Thread safety: none.
class end_to_end {
public:
  end_to_end(own_keys keys, const relayed_ends& ends);
  ~end_to_end();
  end_to_end(const end_to_end&) = delete;

  /// The frame to send in place of `what`. Returns nothing if the other side's greeting has not
  /// come, except for the first frame.
  std::optional<frame> protect(const frame& what);
  /// The frame that the other side protected. Returns nothing if the other side did not send it as
  /// the next one.
  std::optional<payload> open(const payload& came);
  /// The certificate in the other side's greeting, as PEM. Its owner signed the greeting, and has
  /// the other side's node id. The caller checks whether the certificate is admitted.
  const std::string& certificate() const noexcept { return certificate_; }

private:
  using key_bytes = std::array<unsigned char, 32>;

  frame greeting(const frame& first);
  std::optional<payload> open_greeting(const payload& came);
  void agree();

  const own_keys keys_;
  const relayed_ends ends_;
  key_bytes own_public_{}, own_secret_{}, their_public_{}, receive_{}, send_{};
  bool greeted_ = false, agreed_ = false;
  std::uint64_t sent_ = 0, received_ = 0;
  std::string certificate_;
};

} // namespace shoal::netem::wire
