// Requests to the page's server, and addresses to listen at.
#include "scenarios/observe/listen_address.hpp"
#include "scenarios/page/page_route.hpp"
#include "tests/fuzz/targets.hpp"

#include <fmt/format.h>

namespace shoal::fuzz {

void http(bytes input) {
  using namespace scenarios;
  using kind = page_route::kind;
  front from(input);
  const auto how = from.byte();
  const std::size_t runs = from.byte() % 12;
  const bool named = (how & 1) != 0, says_host = (how & 2) != 0;
  const auto host = text_of(from.take(from.byte() % 64));
  const auto path = text_of(from.rest());
  const char* methods[] = {"GET", "HEAD", "POST", "get", "GET ", ""};
  const std::string_view method = methods[how / 4 % 6];
  const auto route = route_of({method, path, says_host ? std::optional(host) : std::nullopt}, runs,
                              named ? "lab-3" : "", "10.0.0.5");
  const bool reads = method == "GET" || method == "HEAD";
  must(reads == (route.what != kind::no_such_method), "it is read, and never changed");
  if (route.what == kind::page) must(path == "/", "one path leads to the page");
  if (route.what == kind::runs) must(path == "/runs", "one path leads to the runs");
  if (route.what == kind::events)
    must(route.run < runs && path == fmt::format("/runs/{}/events", route.run),
         "and one to each run's events");
  if (reads && says_host && route.what != kind::not_our_name)
    must(host.starts_with("localhost") || (named && host.starts_with("lab-3")) ||
             host.find_first_of("0123456789[") == 0 || host.starts_with("."),
         "under our names only");
  if (const auto address = parse_listen_address(host)) {
    const auto again = parse_listen_address(address->text());
    must(again && again->host == address->host && again->port == address->port &&
             again->v6 == address->v6,
         "an address reads back");
  }
}

} // namespace shoal::fuzz
