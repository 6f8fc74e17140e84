// The numbers of hosts, machines, links and actors of the emulated network. The header is small, so
// that code that only reads events or queries hosts needs no more.
#pragma once

#include <cstdint>

namespace shoal::netem {

/// The index of one incarnation of a machine, in the order of their starts.
using host_index = std::uint32_t;
inline constexpr host_index no_host = 0xffffffff;

using region_index = std::uint32_t;
using machine_index = std::uint32_t;
using site_index = std::uint32_t;
inline constexpr site_index no_site = 0xffffffff;

enum class link_id : std::uint32_t {};

/// The part of a computer that dies. Observers notice the end of a process at once, and the end of
/// a machine by its silence.
enum class kill_scope { process, machine };

/// An actor as the history names it.
struct endpoint {
  host_index host = no_host;
  std::uint32_t ordinal = 0;
};

/// The key of an ordered pair of hosts.
constexpr std::uint64_t pair_of(host_index from, host_index to) noexcept {
  return (std::uint64_t{from} << 32) | to;
}
constexpr host_index sender_of(std::uint64_t pair) noexcept {
  return static_cast<host_index>(pair >> 32);
}
constexpr host_index receiver_of(std::uint64_t pair) noexcept {
  return static_cast<host_index>(pair);
}

} // namespace shoal::netem
