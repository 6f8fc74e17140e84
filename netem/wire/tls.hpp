// TLS 1.3 over a socket, with a certificate on both sides.
//
// The side that dials checks during the handshake that the moderator issued the other's
// certificate. The side that listens only sees a proof that the other has the key of the
// certificate it shows. The local host checks the certificate itself, so a refusal can carry a
// reason (local_host_links.cpp).
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/socket_stream.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace shoal::netem::wire {

enum class tls_side { dials, listens };

/// Thread safety: all.
class tls_credentials {
public:
  /// All three are PEM texts: the key, its certificate, and the certificate of the moderator.
  /// Keeps no copy of the key's text.
  /// Errors: a text is damaged; the key does not belong to the certificate.
  static result<std::shared_ptr<const tls_credentials>>
  make(std::string_view key_pem, std::string_view certificate_pem, std::string_view ca_pem);
  virtual ~tls_credentials() = default;
  /// A stream on a connected socket. Its handshake has not begun.
  virtual std::unique_ptr<socket_stream> open(descriptor socket, tls_side side) const = 0;
};

} // namespace shoal::netem::wire
