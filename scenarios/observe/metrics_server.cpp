#include "scenarios/observe/metrics_server.hpp"

#include "scenarios/observe/listen_address.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <prometheus/exposer.h>
#include <prometheus/registry.h>
#include <pthread.h>

#include <algorithm>
#include <exception>

// Debian's civetweb, which prometheus-cpp uses, gives its threads stacks of 100 KiB. glibc puts the
// thread-local data of all libraries on the stack. With libtorch this data does not fit, and no
// thread starts. This replacement raises every stack size in the process to at least one mebibyte.
extern "C" int pthread_attr_setstacksize(pthread_attr_t* attributes, std::size_t size) noexcept {
  using function = int (*)(pthread_attr_t*, std::size_t);
  static const auto original =
      reinterpret_cast<function>(dlsym(RTLD_NEXT, "pthread_attr_setstacksize"));
  return original(attributes, std::max(size, std::size_t{1} << 20));
}

namespace shoal::scenarios {

metrics_server::metrics_server(std::unique_ptr<prometheus::Exposer> exposer, std::string url)
    : exposer_(std::move(exposer)), url_(std::move(url)) {}

metrics_server::~metrics_server() = default;

result<std::unique_ptr<metrics_server>> metrics_server::listen(std::string_view address) {
  const auto wanted = parse_listen_address(address);
  if (!wanted) return failure{wanted.error()};
  for (int tries = 1;; ++tries) {
    auto at = *wanted;
    const auto port = try_to_listen(at);
    if (!port)
      return failure{fmt::format("cannot serve metrics at {}: {}", at.text(), port.error())};
    at.port = *port;
    try {
      // The second thread answers the next scraper while another one hangs.
      auto exposer = std::make_unique<prometheus::Exposer>(at.text(), 2);
      return std::unique_ptr<metrics_server>(
          new metrics_server(std::move(exposer), fmt::format("http://{}/metrics", at.text())));
    } catch (const std::exception& error) {
      // Between try_to_listen() and here another process may have taken the free port.
      if (wanted->port != 0 || tries == 10)
        return failure{fmt::format("cannot serve metrics at {}: {}", at.text(), error.what())};
    }
  }
}

void metrics_server::serve(const std::shared_ptr<prometheus::Registry>& values) {
  exposer_->RegisterCollectable(values);
}

} // namespace shoal::scenarios
