// host:port as people write it.
#pragma once

#include "kernels/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::netem::wire {

struct address {
  std::string host; ///< a name, or the number of an IPv4 or IPv6 address without brackets
  std::uint16_t port = 0;

  std::string text() const {
    return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" +
           std::to_string(port);
  }
  bool operator==(const address&) const = default;
};

/// 'lab-3.example.org:7000', '10.0.0.5:7000', '[::1]:7000'. Errors: what is wrong with it, and how
/// it should look.
result<address> parse_address(std::string_view text);

/// Its numbers, resolved now. Errors: 'cannot resolve …: why'.
result<address> resolve(const address& what);

} // namespace shoal::netem::wire
