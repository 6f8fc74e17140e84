// The rules of who can open a connection to whom: address translation (NAT), hole punching and
// relays. Plain state without clock or actors. The fabric asks for each message of which an end is
// not open.
//
//   open           every host may dial it
//   cone           one public address for all destinations; lets in hosts that it has sent to
//                  (address-restricted)
//   symmetric      another public address for each destination; lets in that destination only,
//                  port included
//   outbound_only  dials over TCP only: no datagram leaves it, and no host gets in
//
// When `a` dials `b`, the first possible way is taken:
// - direct: b is open.
// - reversed: a is open. A relay tells b to dial a.
// - punched: a relay tells both to send at the same time. This is possible between two cones, and
//   between cone and symmetric, because the cone lets in the other's address with any port. Two
//   symmetric hosts cannot punch, as neither knows the other's port; outbound_only hosts never can.
//   A possible punch succeeds with a probability, drawn once for each pair of machines.
// - relayed: every byte takes the relay's links, and counts against its budget.
//
// A connection costs time before the first message: nothing if direct, as between open hosts.
// Reversed: the way to b by the relay, and back. Punched: three one-way trips by the relay and one
// between the two (the exchange of addresses, the signal, the meeting). Relayed: a round trip by
// the relay. Both directions use the connection until an end dies.
//
// A relay's budget limits the relayed bytes of a run; signalling does not count. A relay without
// budget refuses all requests, signalling included. Existing punched and reversed connections stay.
// Every host that is not open keeps a connection to every relay. The nearest relay that is alive
// and has budget is taken.
//
// Left out: carriers' NAT behind NAT; port prediction; relays that are not open. Translations do
// not expire when idle, since peers talk often enough. A host with port mapping (UPnP) or full-cone
// NAT behaves like an open one.
//
// Source: Rosenberg et al., RFC 3489, section 5 (the classes); Ford, Srisuresh and Kegel,
// "Peer-to-Peer Communication Across Network Address Translators", USENIX ATC 2005; libp2p's
// Circuit Relay v2 and DCUtR; Trautwein et al., "Decentralized Hole Punching", DINPS 2022, and the
// campaign that followed it (about 70 % of the attempts succeed).
#pragma once

#include "kernels/base/units.hpp"
#include "netem/flat_map.hpp"
#include "netem/nat_class.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace shoal::netem {

enum class way_in : std::uint8_t { direct, reversed, punched, relayed };
inline constexpr std::array<std::string_view, 4> way_names{"direct", "reversed", "punched",
                                                           "relayed"};

/// The reason why a message reaches no host: there is no relay, or all relays have spent their
/// budget.
enum class unreachable_because : std::uint8_t { no_relay, relay_spent };
inline constexpr std::array<std::string_view, 2> unreachable_names{"no_relay", "relay_spent"};

/// True if two hosts, neither open, can connect by sending at the same time.
constexpr bool can_punch(nat_class a, nat_class b) noexcept {
  const auto punchable = [](nat_class c) {
    return c == nat_class::cone || c == nat_class::symmetric;
  };
  return punchable(a) && punchable(b) && (a == nat_class::cone || b == nat_class::cone);
}

struct nat_counts {
  /// Opened connections, by way_in. Direct ones count only with an end that is not open.
  std::array<std::uint64_t, 4> connections{};
  std::array<std::uint64_t, 2> unreachable{}; ///< dropped messages, by unreachable_because
  std::uint64_t relayed_bytes = 0;
  bool operator==(const nat_counts&) const = default;
};

class nat_rules {
public:
  using node = std::uint32_t; ///< the fabric's number of an incarnation of a machine
  static constexpr node nobody = 0xffffffff;

  /// `delay` gives the delay of one direction, without jitter.
  nat_rules(std::uint64_t seed, double hole_punching, std::function<duration(node, node)> delay);

  /// Adds a host. Hosts that are not added count as open.
  void add(node host, std::uint32_t machine, nat_class what);
  void add_relay(node host, std::uint64_t budget_bytes);
  /// Removes the connections of `host`, which has died.
  void forget(node host);

  struct answer {
    enum class kind : std::uint8_t { go, wait, never } what = kind::go;
    node relay = nobody;       ///< go: the relay of the way, if there is one
    duration ready{};          ///< wait: the time to ask again
    unreachable_because why{}; ///< never: the reason
  };
  /// Asks whether `from` can send `bytes` to `to`. With `go`, the bytes are taken from the relay's
  /// budget. With `never`, the message is counted.
  answer ask(node from, node to, std::uint64_t bytes, duration now);

  nat_class class_of(node host) const noexcept {
    return host < hosts_.size() ? hosts_[host].what : nat_class::open;
  }
  /// The public address that `by` sees in datagrams of `of`, as a number for comparison only. 0: no
  /// datagram arrives.
  std::uint64_t address_of(node of, node by) const noexcept;
  /// True if a relay is alive and has budget.
  bool relay_left() const noexcept;
  const nat_counts& counts() const noexcept { return counts_; }

private:
  struct host {
    nat_class what = nat_class::open;
    std::uint32_t machine = 0;
  };
  struct relay {
    node host;
    std::uint64_t left;
    bool alive = true;
  };
  struct connection {
    way_in way{};
    std::uint32_t relay = 0; // relayed: the relay's index
    duration ready{};
  };

  bool punched(node a, node b) const;
  relay* nearest(node from, node to);

  std::uint64_t seed_;
  double hole_punching_;
  std::function<duration(node, node)> delay_;
  std::vector<host> hosts_;
  std::vector<relay> relays_;
  flat_map<connection> connections_; // by the pair, with the smaller host first
  nat_counts counts_;
};

} // namespace shoal::netem
