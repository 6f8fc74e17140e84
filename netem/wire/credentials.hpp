// A node's keys as credentials of TLS, and the admission check of a swarm. Both sides use TLS 1.3,
// each with the certificate that the moderator issued.
//
// The TLS handshake proves that a peer holds the private key of its certificate. The local host
// checks the certificate itself before it reads anything from the stream (local_host_links.cpp). At
// that point the refusal can carry a reason: expired, revoked, of another moderator.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/network.hpp"
#include "netem/wire/signing_key.hpp"
#include "netem/wire/tls.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace shoal::netem::wire {

struct credentials {
  std::string name; ///< the node's name
  std::shared_ptr<const tls_credentials> tls;
  /// Signs a text with this node's key; see signed_text.hpp.
  std::function<std::string(std::string_view kind, std::string_view text)> sign;
  std::shared_ptr<const signing_key> key;
  std::string certificate; ///< PEM
  /// Reads the folder's revocation list again when the file has changed.
  std::shared_ptr<const admission> admits;
};

/// Loads a folder that `shoal keys admit` made. Errors: those of load_node_keys().
result<credentials> load_credentials(const std::filesystem::path& folder);

} // namespace shoal::netem::wire
