#include "scenarios/observe/metrics_server.hpp"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <prometheus/exposer.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <exception>

// Debian's civetweb, which prometheus-cpp serves with, gives its threads stacks of 100 KiB. glibc puts the thread-local data of all libraries
// there, and where libtorch is among them they do not fit: no thread begins. So nobody in this process asks for less than a mebibyte.
extern "C" int pthread_attr_setstacksize(pthread_attr_t* attributes, std::size_t size) noexcept {
  using function = int (*)(pthread_attr_t*, std::size_t);
  static const auto original = reinterpret_cast<function>(dlsym(RTLD_NEXT, "pthread_attr_setstacksize"));
  return original(attributes, std::max(size, std::size_t{1} << 20));
}

namespace shoal::scenarios {

namespace {

struct endpoint {
  std::string host; // an address, without brackets
  bool v6 = false;
  std::uint16_t port = 0;

  std::string text() const { return fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port); }
};

result<endpoint> parse(std::string_view text) {
  const failure wrong{fmt::format("'{}' is no address to listen at; it looks like 127.0.0.1:9464", text)};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return wrong;
  endpoint out;
  out.host = text.substr(0, colon);
  if (out.host.starts_with('[') && out.host.ends_with(']')) {
    out.host = out.host.substr(1, out.host.size() - 2);
    out.v6 = true;
  }
  if (out.host == "localhost")
    out.host = "127.0.0.1";
  in6_addr ignored{};
  if (inet_pton(out.v6 ? AF_INET6 : AF_INET, out.host.c_str(), &ignored) != 1)
    return wrong;
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (error != std::errc{} || end != port.data() + port.size())
    return wrong;
  return out;
}

/// The HTTP server says no more than that something is wrong, so what it is about to do is tried before. Returns the port, which the
/// system chooses for port 0.
result<std::uint16_t> try_to_listen(const endpoint& at) {
  const auto failed = [&](int code) {
    return failure{fmt::format("cannot serve metrics at {}: {}", at.text(), std::strerror(code))};
  };
  const int descriptor = socket(at.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0)
    return failed(errno);
  const int yes = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_storage storage{};
  socklen_t size = 0;
  if (at.v6) {
    auto& address = reinterpret_cast<sockaddr_in6&>(storage);
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(at.port);
    inet_pton(AF_INET6, at.host.c_str(), &address.sin6_addr);
    size = sizeof address;
  } else {
    auto& address = reinterpret_cast<sockaddr_in&>(storage);
    address.sin_family = AF_INET;
    address.sin_port = htons(at.port);
    inet_pton(AF_INET, at.host.c_str(), &address.sin_addr);
    size = sizeof address;
  }
  auto* where = reinterpret_cast<sockaddr*>(&storage);
  const bool listens = bind(descriptor, where, size) == 0 && listen(descriptor, 1) == 0 && getsockname(descriptor, where, &size) == 0;
  const int code = errno;
  close(descriptor);
  if (!listens)
    return failed(code);
  return ntohs(at.v6 ? reinterpret_cast<sockaddr_in6&>(storage).sin6_port : reinterpret_cast<sockaddr_in&>(storage).sin_port);
}

} // namespace

metrics_server::metrics_server(std::unique_ptr<prometheus::Exposer> exposer, std::string url)
    : exposer_(std::move(exposer)), url_(std::move(url)) {}

metrics_server::~metrics_server() = default;

result<std::unique_ptr<metrics_server>> metrics_server::listen(std::string_view address) {
  const auto wanted = parse(address);
  if (!wanted)
    return failure{wanted.error()};
  for (int tries = 1;; ++tries) {
    auto at = *wanted;
    const auto port = try_to_listen(at);
    if (!port)
      return failure{port.error()};
    at.port = *port;
    try {
      // One thread answers, one more so that a scraper that hangs does not keep out the next.
      auto exposer = std::make_unique<prometheus::Exposer>(at.text(), 2);
      return std::unique_ptr<metrics_server>(
          new metrics_server(std::move(exposer), fmt::format("http://{}/metrics", at.text())));
    } catch (const std::exception& error) {
      // Between the two somebody else may have taken a port that was free.
      if (wanted->port != 0 || tries == 10)
        return failure{fmt::format("cannot serve metrics at {}: {}", at.text(), error.what())};
    }
  }
}

void metrics_server::serve(const std::shared_ptr<prometheus::Registry>& values) {
  exposer_->RegisterCollectable(values);
}

} // namespace shoal::scenarios
