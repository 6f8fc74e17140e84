// The other hosts that one host knows: their names, addresses and services, the link with each, and
// the frames that wait for a link.
#pragma once

#include "netem/wire/dialler.hpp"
#include "netem/wire/handshake.hpp"
#include "netem/wire/host_link.hpp"
#include "netem/wire/network.hpp"

#include <caf/actor.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace shoal::netem::wire {

struct remote {
  struct queued {
    frame what;
    bool bulk;
  };
  host_index host = no_host;
  node_key node;
  std::string name, address;
  host_index relay = no_host; ///< the host over which it can be reached
  caf::actor service;
  std::shared_ptr<host_link> up; ///< frames to the host go over this link
  std::shared_ptr<host_link> dialling;
  std::deque<queued> outbox; ///< frames that wait for a link
  std::size_t outbox_bytes = 0;
  reconnect attempts;
  std::set<std::uint32_t> watching; ///< actors of the host that actors of this host observe

  /// A way to the host: its address, or else a relay.
  struct way {
    std::string address;
    host_index relay = no_host;
    bool operator==(const way&) const = default;
  };
  bool is_told = false;        ///< another host told the way, which may be wrong
  host_index teller = no_host; ///< the host that told the last way
  struct failed_way {
    way which;
    bool refused = false; ///< no process listens there
  };
  failed_way failed;          ///< the last told way that led nowhere, or to another host
  std::set<host_index> asked; ///< hosts that were asked for the way and have not answered
  std::optional<duration> unused_since;

  /// The way led nowhere, or to another host. Forgets the way if another host told it.
  void way_failed();
  void clear_outbox();
  connected_peer as_connected_peer(duration now) const;
};

/// Thread safety: none; the local host's lock guards it.
class remote_hosts {
public:
  /// `node_of` and `address_of` ask the process about a host. An empty address means unknown.
  remote_hosts(std::function<node_key(host_index)> node_of,
               std::function<std::string(host_index)> address_of)
      : node_of_(std::move(node_of)), address_of_(std::move(address_of)) {}

  /// The entry of `host`, which is added if it is not there.
  remote& of(host_index host);
  remote* find(host_index host);
  remote* find(const node_key& node);
  /// The link with that host, or null. Links over relays do not count.
  std::shared_ptr<host_link> direct_link(const node_key& node);
  bool is_up(host_index host) const;
  std::vector<connected_peer> connected_peers(duration now) const;
  /// Refuses a hello whose name belongs to another living process, as far as this host knows.
  verdict check_name(const hello& theirs, duration now, duration detection_time) const;
  /// Forgets hosts that have had no link and no messages for an hour.
  void prune(duration now);
  std::size_t size() const noexcept { return hosts_.size(); }
  void erase(host_index host) { hosts_.erase(host); }
  void clear() { hosts_.clear(); }

  auto begin() { return hosts_.begin(); }
  auto end() { return hosts_.end(); }

private:
  const std::function<node_key(host_index)> node_of_;
  const std::function<std::string(host_index)> address_of_;
  std::map<host_index, remote> hosts_;
};

} // namespace shoal::netem::wire
