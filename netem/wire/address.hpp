// A network address: a host and a port, as in 'lab-3.example.org:7000'.
#pragma once

#include "kernels/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::netem::wire {

struct address {
  /// A name, or the number of an IPv4 or IPv6 address without brackets.
  std::string host;
  std::uint16_t port = 0;

  std::string text() const {
    return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" +
           std::to_string(port);
  }
  bool operator==(const address&) const = default;
};

/// Parses 'lab-3.example.org:7000', '10.0.0.5:7000' or '[::1]:7000'.
/// Errors: a sentence that says what is wrong with `text` and shows the expected form.
result<address> parse_address(std::string_view text);

/// Resolves the host name to a numeric address. Errors: 'cannot resolve …: why'.
result<address> resolve(const address& what);

} // namespace shoal::netem::wire
