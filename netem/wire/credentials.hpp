// A node's keys as gRPC takes them, and who may take part: TLS 1.3 on both sides, each with the
// certificate that the moderator issued.
//
// Who has no key of a certificate does not get through the handshake. Whether the certificate is
// good is looked at before anything that the stream brings is read (network.cpp), because there the
// refusal has a name: expired, revoked, of another moderator.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/network.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace shoal::netem::wire {

struct credentials {
  std::string name; ///< of the node
  std::shared_ptr<grpc::ServerCredentials> server;
  std::shared_ptr<grpc::ChannelCredentials> channel;
  /// signed_text.hpp, with this node's key.
  std::function<std::string(std::string_view kind, std::string_view text)> sign;
  std::shared_ptr<const admission>
      admits; ///< reads the folder's revocation list again when that has changed
};

/// From a folder as `shoal keys admit` makes it. Errors: those of load_node_keys().
result<credentials> load_credentials(const std::filesystem::path& folder);

} // namespace shoal::netem::wire
