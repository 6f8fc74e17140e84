// The path between two hosts as messages meet it: its links, its delay, and the draws of jitter and
// loss. All draws come from the sending host's stream. Thread safety: none.
#pragma once

#include "netem/flat_map.hpp"
#include "netem/host_table.hpp"
#include "netem/topology.hpp"
#include "netem/transport.hpp"

#include <cstdint>

namespace shoal::netem {

/// A TCP segment on the wire: the bytes of its payload and of its headers.
inline constexpr std::uint64_t segment_bytes = 1448;
inline constexpr std::uint64_t segment_header_bytes = 40;

class paths {
public:
  paths(const topology& where, host_table& hosts, transfer_model model, const tcp_options& tcp,
        duration detection_time)
      : topology_(where), hosts_(hosts), model_(model), tcp_(tcp), detection_time_(detection_time) {
  }

  transfer_model model() const noexcept { return model_; }

  const topology::way& between(host_index from, host_index to) const {
    return topology_.between(hosts_[from].where.place, hosts_[to].where.place);
  }
  /// The delay of one direction, without jitter; over `relay` if there is one.
  duration delay(host_index from, host_index to, host_index relay = no_host) const;
  duration round_trip(host_index from, host_index to, host_index relay = no_host) const {
    return delay(from, to, relay) + delay(to, from, relay);
  }
  /// The conditions for a transfer at this time.
  path_now conditions(host_index from, host_index to, host_index relay) const;
  topology::route route(host_index from, host_index to, host_index relay) const;
  /// TCP's retransmission timeout after a first loss.
  duration retransmission_timeout(host_index from, host_index to) const;

  duration drawn_delay(host_index from, host_index to, host_index relay = no_host);
  struct small_draw {
    duration delay{};         ///< includes the wait caused by losses
    std::uint64_t copies = 0; ///< sent besides the message itself: duplicates and retransmissions
  };
  small_draw draw_small(host_index from, host_index to, std::uint64_t bytes);

private:
  duration direct_delay(host_index from, host_index to) const {
    return topology_.delay(hosts_[from].where, hosts_[to].where);
  }
  duration drawn_directly(host_index from, host_index to);
  path_memory* memory_of(const topology::way& on, host_index from, host_index to) {
    return on.remembers ? &memories_[pair_of(from, to)] : nullptr;
  }

  const topology& topology_;
  host_table& hosts_;
  transfer_model model_;
  tcp_options tcp_;
  duration detection_time_;
  flat_map<path_memory> memories_; // by the pair of hosts
};

} // namespace shoal::netem
