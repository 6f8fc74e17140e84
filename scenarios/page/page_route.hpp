// What a request to the page's server asks for, from its bytes alone. There are no files behind it,
// so no path can lead to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shoal::scenarios {

/// A request as it came.
struct page_request {
  std::string_view method, path;
  std::optional<std::string_view>
      host; ///< what it calls us, with or without a port; none: it does not say
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
  std::size_t run = 0; ///< of events
  bool operator==(const page_route&) const = default;
};

/// `runs`: how many are served. `own_host`: the address that we listen at, as it is written in a
/// URL; `loopback`: only this machine reaches it, so that we answer to our own names alone: a page
/// of somebody else's may make a browser ask us under a name of his.
page_route route_of(const page_request& asked, std::size_t runs, bool loopback,
                    std::string_view own_host);

} // namespace shoal::scenarios
