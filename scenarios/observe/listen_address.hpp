// Where a server of this process listens, as it is said on the command line.
#pragma once

#include "kernels/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

struct sockaddr_storage;

namespace shoal::scenarios {

struct listen_address {
  std::string host; ///< an address, without brackets
  bool v6 = false;
  std::uint16_t port = 0; ///< 0: a free one

  /// '127.0.0.1:9464', '[::1]:9464'.
  std::string text() const;
  /// Only this machine reaches it.
  bool loopback() const;
  /// For bind(). Returns its size.
  unsigned fill(sockaddr_storage& into) const;
};

/// '127.0.0.1:9464', '[::1]:9464', 'localhost:9464'; ':9464' is 127.0.0.1:9464.
/// Errors: anything else.
result<listen_address> parse_listen_address(std::string_view text);

/// HTTP servers say no more than that something is wrong, so what they are about to do is tried
/// before. Returns the port, which the system chooses for port 0. Errors: why it cannot be listened
/// there, in the system's words.
result<std::uint16_t> try_to_listen(const listen_address& at);

} // namespace shoal::scenarios
