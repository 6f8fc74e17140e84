#include "tools/place_arguments.hpp"

#include "tools/arguments.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace shoal::tools {

namespace {

std::optional<netem::wire::address> address_in(const char* option, const std::string& text) {
  auto out = netem::wire::parse_address(text);
  if (out) return *out;
  fmt::print(stderr, "error: {}: {}\n", option, out.error());
  return std::nullopt;
}

} // namespace

void add_join(CLI::App& command, std::vector<std::string>& into) {
  command
      .add_option("--join", into,
                  "a running host of the swarm; repeatable. The first host of a swarm joins "
                  "no host, and may name itself")
      ->type_name("HOST:PORT")
      ->allow_extra_args(false);
}

void place_arguments::add_to(CLI::App& command) {
  command
      .add_option("--listen", listen,
                  "the address at which others reach this host, as 0.0.0.0:7000")
      ->type_name("HOST:PORT");
  command
      .add_option("--advertise", advertise, "the address that others dial, if it is another one")
      ->type_name("HOST:PORT");
  command.add_flag("--outbound-only", outbound_only,
                   "others cannot dial this host; they reach it over the links that it opens");
  add_join(command, join);
}

std::optional<std::vector<netem::wire::address>> parse_join(const std::vector<std::string>& from) {
  std::vector<netem::wire::address> out;
  bool good = true;
  for (const auto& each : from) {
    const auto at = address_in("--join", each);
    if (at) {
      // The name is resolved now, because later the process would only retry again and again.
      if (auto numbers = netem::wire::resolve(*at); !numbers) {
        fmt::print(stderr, "error: --join: {}\n", numbers.error());
        good = false;
      }
      out.push_back(*at);
    }
    good = good && at;
  }
  if (!good) return std::nullopt;
  return out;
}

std::optional<place_arguments::parsed> place_arguments::parse() const {
  parsed out;
  bool good = true;
  if (!listen.empty()) {
    out.listen = address_in("--listen", listen);
    good = out.listen.has_value();
  }
  if (!advertise.empty()) {
    const auto at = address_in("--advertise", advertise);
    if (at) out.advertise = at->text();
    good = good && at;
  }
  if (auto all = parse_join(join))
    out.join = std::move(*all);
  else
    good = false;
  if (!good) return std::nullopt;
  if (out.listen && outbound_only) {
    fmt::print(
        stderr,
        "error: --listen and --outbound-only: either others reach this host or they do not\n");
    return std::nullopt;
  }
  if (!out.listen && !outbound_only) {
    fmt::print(stderr,
               "error: give the address of this host with --listen HOST:PORT, or say that others "
               "cannot reach it with --outbound-only\n");
    return std::nullopt;
  }
  if (outbound_only && out.join.empty()) {
    fmt::print(stderr,
               "error: a host that others cannot reach has to --join a host that they can reach\n");
    return std::nullopt;
  }
  const auto any = out.listen && (out.listen->host == "0.0.0.0" || out.listen->host == "::");
  if (any && out.advertise.empty()) {
    // Other hosts cannot dial a wildcard address. They can dial this machine's name where names
    // resolve.
    const auto name = host_name();
    auto numbers = netem::wire::resolve({name, out.listen->port});
    if (!numbers || numbers->host.starts_with("127.")) {
      fmt::print(stderr,
                 "error: --listen {} listens on all interfaces; give the address that others dial "
                 "with --advertise HOST:PORT\n",
                 listen);
      return std::nullopt;
    }
    out.advertise = netem::wire::address{numbers->host, out.listen->port}.text();
  }
  return out;
}

} // namespace shoal::tools
