// Serves metrics to Prometheus over HTTP, at /metrics. One thread of libmicrohttpd answers all
// scrapers, and a slow one delays nobody. Limits: 64 connections, each for one request and 20 s.
// The server answers only to its own names (is_own_name() in listen_address.hpp).
#pragma once

#include "kernels/base/result.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace prometheus {
class Registry;
} // namespace prometheus

namespace shoal::scenarios {

class metrics_server {
public:
  /// Listens at `address`: '127.0.0.1:9464', '[::1]:9464', 'localhost:9464'. Port 0 takes a free
  /// port. Errors: the text is no such address; the port is in use or needs other rights; this
  /// machine does not have the address.
  static result<std::unique_ptr<metrics_server>> listen(std::string_view address);
  ~metrics_server();

  /// Adds `values` to what scrapers get, until the registry is gone.
  /// Thread safety: the values may be changed while they are scraped.
  void serve(const std::shared_ptr<prometheus::Registry>& values);

  /// The address for scrapers: 'http://127.0.0.1:9464/metrics'.
  const std::string& url() const noexcept { return url_; }

private:
  struct state;
  metrics_server(std::unique_ptr<state> s, std::string url);

  std::unique_ptr<state> state_;
  std::string url_;
};

} // namespace shoal::scenarios
