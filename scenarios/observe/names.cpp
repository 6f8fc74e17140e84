#include "scenarios/observe/names.hpp"

#include "kernels/base/check.hpp"

#include <fmt/format.h>

namespace shoal::scenarios {

const host_identity& host_names::of(netem::host_index host) {
  SHOAL_CHECK(host != netem::no_host, "an event of no host has no name");
  if (host >= entries_.size()) entries_.resize(host + 1);
  entry& found = entries_[host];
  if (!found.known) {
    found.identity = ask_(host);
    found.known = true;
  }
  return found.identity;
}

std::string host_names::host(netem::host_index host) {
  if (host == netem::no_host) return "-";
  const host_identity& who = of(host);
  return fmt::format("{}#{}", who.name, who.incarnation);
}

std::string host_names::actor(const netem::endpoint& where) {
  if (where.host == netem::no_host) return "-";
  const host_identity& who = of(where.host);
  return fmt::format("{}#{}/{}", who.name, who.incarnation, where.ordinal);
}

} // namespace shoal::scenarios
