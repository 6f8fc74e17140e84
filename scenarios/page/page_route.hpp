// Routes a request to the page's server, from the bytes of the request alone. The server has no
// files, so no path can lead to a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shoal::scenarios {

/// A request as received.
struct page_request {
  std::string_view method, path;
  std::optional<std::string_view> host; ///< Host header, with or without a port; empty: no header
};

struct page_route {
  enum class kind : std::uint8_t {
    page,
    runs,
    events,
    no_such_page,
    no_such_method,
    not_our_name
  } what = kind::no_such_page;
  std::size_t run = 0; ///< index of the run, for `events`
  bool operator==(const page_route&) const = default;
};

/// Returns the route of a request. `runs` is the number of served runs. `own_host` is the server's
/// address, as in a URL, and `machine` the name of this machine if other machines reach the server.
/// The Host header may have one of the two, 'localhost', or an address in digits. This check stops
/// a foreign page that makes the browser send requests under a foreign name (DNS rebinding).
page_route route_of(const page_request& asked, std::size_t runs, std::string_view machine,
                    std::string_view own_host);

} // namespace shoal::scenarios
