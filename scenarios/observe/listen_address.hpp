// The address at which a server of this process listens, as the command line gives it.
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
  std::uint16_t port = 0; ///< 0: any free port

  /// The address as text: '127.0.0.1:9464', '[::1]:9464'.
  std::string text() const;
  /// Whether only this machine can reach the address.
  bool loopback() const;
  /// The address for bind(). Returns its size.
  unsigned fill(sockaddr_storage& into) const;
};

/// Parses '127.0.0.1:9464', '[::1]:9464' or 'localhost:9464'; ':9464' means 127.0.0.1:9464.
/// Errors: the text has another form.
result<listen_address> parse_listen_address(std::string_view text);

/// Checks that a server can listen at `at`. HTTP libraries report only that listening failed, so
/// this call finds the reason first. Returns the port, which the system chooses for port 0.
/// Errors: the system's reason why listening fails.
result<std::uint16_t> try_to_listen(const listen_address& at);

/// Whether a server answers to the name in a request's Host header. `own_host` is its address as in
/// a URL, and `machine` the name of this machine if other machines reach the server. 'localhost'
/// and addresses in digits are its own names, too. The check stops a foreign page that makes the
/// browser send requests under a foreign name (DNS rebinding).
bool is_own_name(std::string_view header, std::string_view machine, std::string_view own_host);

/// The name of this machine; empty if the system does not tell it.
std::string machine_name();

} // namespace shoal::scenarios
