#include "netem/wire/address.hpp"

#include "kernels/base/text_fields.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

namespace shoal::netem::wire {

result<address> parse_address(std::string_view text) {
  const auto wrong = [&](std::string why) {
    return failure{"'" + std::string(text) + "' " + why +
                   "; write it as host:port, as in 10.0.0.5:7000"};
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("has no port");
  auto host = text.substr(0, colon);
  const auto port = text.substr(colon + 1);
  if (host.starts_with('[') != host.ends_with(']')) return wrong("has brackets that do not match");
  const bool is_number = host.starts_with('[');
  if (is_number)
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return wrong("is an IPv6 address without brackets");
  if (host.empty()) return wrong("has no host");
  // Other characters have no meaning in any address.
  const auto is_in_no_name = [&](char c) {
    const bool is_alphanumeric =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const std::string_view others = is_number ? ".-_:%" : ".-_";
    return !is_alphanumeric && others.find(c) == std::string_view::npos;
  };
  if (std::any_of(host.begin(), host.end(), is_in_no_name)) return wrong("is no address");
  const auto number = number_of<std::uint16_t>(port);
  if (!number) return wrong("has no port between 0 and 65535");
  return address{std::string(host), *number};
}

result<address> resolve(const address& what) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(what.host.c_str(), nullptr, &hints, &found); code != 0)
    return failure{"cannot resolve '" + what.host + "': " + gai_strerror(code)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner{found, freeaddrinfo};
  char number[INET6_ADDRSTRLEN] = "";
  const void* bytes =
      found->ai_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(found->ai_addr)->sin_addr)
          : &reinterpret_cast<sockaddr_in6*>(found->ai_addr)->sin6_addr;
  inet_ntop(found->ai_family, bytes, number, sizeof(number));
  return address{number, what.port};
}

} // namespace shoal::netem::wire
