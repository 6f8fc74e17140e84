#include "scenarios/observe/listen_address.hpp"

#include "kernels/base/text_fields.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace shoal::scenarios {

std::string listen_address::text() const {
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

bool listen_address::loopback() const {
  return v6 ? host == "::1" : host.starts_with("127.");
}

unsigned listen_address::fill(sockaddr_storage& into) const {
  into = {};
  if (v6) {
    auto& address = reinterpret_cast<sockaddr_in6&>(into);
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    inet_pton(AF_INET6, host.c_str(), &address.sin6_addr);
    return sizeof address;
  }
  auto& address = reinterpret_cast<sockaddr_in&>(into);
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return sizeof address;
}

result<listen_address> parse_listen_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    const bool port = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
    return failure{port ? fmt::format("'{0}' has no ':' before the port: write :{0} for this "
                                      "machine alone, or 0.0.0.0:{0} for others, too",
                                      text)
                        : fmt::format("'{}' has no port: write ADDRESS:PORT, or :PORT for this "
                                      "machine alone",
                                      text)};
  }
  listen_address out;
  out.host = text.substr(0, colon);
  if (out.host.starts_with('[') && out.host.ends_with(']')) {
    out.host = out.host.substr(1, out.host.size() - 2);
    out.v6 = true;
  }
  if (!out.v6 && (out.host == "localhost" || out.host.empty())) out.host = "127.0.0.1";
  in6_addr ignored{};
  const std::string_view port = text.substr(colon + 1);
  if (inet_pton(out.v6 ? AF_INET6 : AF_INET, out.host.c_str(), &ignored) != 1)
    return failure{fmt::format("'{}' in '{}' is no address in digits: 0.0.0.0 stands for all "
                               "addresses of this machine, and an IPv6 address is in brackets",
                               text.substr(0, colon), text)};
  const auto number = number_of<std::uint16_t>(port);
  if (!number) return failure{fmt::format("'{}' in '{}' is no port from 0 to 65535", port, text)};
  out.port = *number;
  return out;
}

result<std::uint16_t> try_to_listen(const listen_address& at) {
  const int descriptor = socket(at.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return failure{std::strerror(errno)};
  const int yes = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_storage storage{};
  socklen_t size = at.fill(storage);
  auto* where = reinterpret_cast<sockaddr*>(&storage);
  const bool listens = bind(descriptor, where, size) == 0 && listen(descriptor, 1) == 0 &&
                       getsockname(descriptor, where, &size) == 0;
  const int code = errno;
  close(descriptor);
  if (!listens) return failure{std::strerror(code)};
  return ntohs(at.v6 ? reinterpret_cast<sockaddr_in6&>(storage).sin6_port
                     : reinterpret_cast<sockaddr_in&>(storage).sin_port);
}

namespace {

/// True for the digits of an IPv4 address, or an IPv6 address in brackets. No name of another
/// machine looks like this, so a page of another site cannot have it as its name.
bool is_number(std::string_view host) {
  const bool is_v6 = host.starts_with('[') && host.ends_with(']');
  const std::string_view allowed = is_v6 ? "[]0123456789abcdefABCDEF:." : "0123456789.";
  return !host.empty() && host.find_first_not_of(allowed) == std::string_view::npos;
}

} // namespace

bool is_own_name(std::string_view header, std::string_view machine, std::string_view own_host) {
  auto host = header;
  if (const std::size_t colon = host.rfind(':');
      colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos)
    host = host.substr(0, colon);
  return host == "localhost" || is_number(host) || (!own_host.empty() && host == own_host) ||
         (!machine.empty() && host == machine);
}

std::string machine_name() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

} // namespace shoal::scenarios
