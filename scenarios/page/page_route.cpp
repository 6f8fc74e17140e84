#include "scenarios/page/page_route.hpp"

#include "kernels/base/text_fields.hpp"
#include "scenarios/observe/listen_address.hpp"

namespace shoal::scenarios {

page_route route_of(const page_request& asked, std::size_t runs, std::string_view machine,
                    std::string_view own_host) {
  using kind = page_route::kind;
  constexpr std::string_view before = "/runs/", behind = "/events";
  if (asked.method != "GET" && asked.method != "HEAD") return {kind::no_such_method};
  if (asked.host && !is_own_name(*asked.host, machine, own_host)) return {kind::not_our_name};
  if (asked.path == "/") return {kind::page};
  if (asked.path == "/runs") return {kind::runs};
  if (asked.path.size() <= before.size() + behind.size() || !asked.path.starts_with(before) ||
      !asked.path.ends_with(behind))
    return {kind::no_such_page};
  // Accept a number only without a sign and without leading zeros.
  const std::string_view number =
      asked.path.substr(before.size(), asked.path.size() - before.size() - behind.size());
  const auto run = number_of<std::size_t>(number);
  if (!run || (number.size() > 1 && number.front() == '0') || *run >= runs)
    return {kind::no_such_page};
  return {kind::events, *run};
}

} // namespace shoal::scenarios
