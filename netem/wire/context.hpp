// The state that all hosts of one process share: options, clock, fabric and counters.
#pragma once

#include "netem/wire/frames.hpp"
#include "netem/wire/network.hpp"

#include <caf/actor_system.hpp>
#include <caf/node_id.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace shoal::netem::wire {

/// Thread safety: the counters and the functions, all. The other members do not change after the
/// first host is opened.
struct context {
  explicit context(wire_options given);

  wire_options options;
  std::array<std::uint8_t, 32> scenario{}; ///< the hash of options.scenario
  caf::actor_system* system = nullptr;
  fabric* net = nullptr;
  coordinator* clock = nullptr;

  std::atomic<std::uint64_t> made{0}, lost{0}, linked{0}; ///< links
  std::atomic<std::uint64_t> frames_in{0}, frames_out{0}, bytes_in{0}, bytes_out{0};
  std::atomic<std::uint64_t> messages_lost{0}, relayed_bytes{0}, held_back{0}, unhandled{0};

  /// The bytes of incomplete messages, over all links.
  const std::shared_ptr<std::atomic<std::uint64_t>> incomplete =
      std::make_shared<std::atomic<std::uint64_t>>(0);

  duration now() const;
  /// Counts a refusal or a fault by its name.
  void count(std::string_view why);
  /// The address on which a host of this process listens; empty if the host does not listen.
  std::string address_of(host_index host) const;
  void set_address(host_index host, const std::string& address);
  void add_counts(network_counts& into) const;

private:
  mutable std::mutex mutex_; // guards the members below
  std::map<std::string, std::uint64_t> refused_;
  std::map<host_index, std::string> addresses_;
};

/// The node id of a host, in the form that frames carry. Requires: the fabric made the id.
node_key key_of(const caf::node_id& node);
/// The inverse of key_of().
caf::node_id node_of_key(const node_key& key);

} // namespace shoal::netem::wire
