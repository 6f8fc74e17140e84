// Who can open a connection to whom: address translation (NAT), hole punching and relays. Rules and
// books only: no clock, no actors; the fabric asks for each message where one of its ends is not
// open.
//
//   open           everybody may dial it
//   cone           one public address for all destinations; lets in only those whose address it has
//   sent to (address-restricted) symmetric      another public address for each destination; lets
//   in only that destination, port included outbound_only  dials over TCP and nothing else: no
//   datagram leaves it, nobody gets in
//
// When `a` dials `b`, the first of these that works:
//   direct    b is open
//   reversed  a is open: a relay tells b to dial a
//   punched   both send at once, which a relay tells them to. Possible between cone and cone, and
//   between cone and
//             symmetric, because the cone lets in the other's address whatever its port; not
//             between symmetric and symmetric, where neither knows the other's port, and never with
//             outbound_only. Where it is possible it works with a probability, drawn once for each
//             pair of machines.
//   relayed   every byte takes the relay's links, and is taken from its budget
// What a connection costs before the first message: nothing (direct, as between open hosts); the
// way to b by the relay and back (reversed); three one-way trips by the relay and one between them
// (punched: the exchange of addresses, the signal, the meeting); a round trip by the relay
// (relayed). Both directions use it until an end dies.
//
// A relay's budget is that of a run, for bytes relayed; signalling is not counted. One that has
// spent it refuses everything, signalling included; those that are connected already by punching or
// reversal stay so. Every host that is not open keeps a connection to every relay. The nearest
// relay that is alive and not spent is taken.
//
// Left out: translations that are forgotten when idle (peers talk often enough to keep them),
// carriers' NAT behind NAT, port prediction, port mapping (UPnP: call such a host open), full-cone
// NAT (the same), relays that are not open.
//
// Sources: Rosenberg et al., RFC 3489, section 5 (the classes); Ford, Srisuresh and Kegel,
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

/// Why a message reaches nobody: there is no relay, or those that there are have spent their
/// budget.
enum class unreachable_because : std::uint8_t { no_relay, relay_spent };
inline constexpr std::array<std::string_view, 2> unreachable_names{"no_relay", "relay_spent"};

/// Whether two hosts, neither open, can get through to each other by sending at once.
constexpr bool can_punch(nat_class a, nat_class b) noexcept {
  const auto punchable = [](nat_class c) {
    return c == nat_class::cone || c == nat_class::symmetric;
  };
  return punchable(a) && punchable(b) && (a == nat_class::cone || b == nat_class::cone);
}

struct reachability_counts {
  std::array<std::uint64_t, 4>
      connections{}; ///< opened, by way_in; direct ones only with an end that is not open
  std::array<std::uint64_t, 2> unreachable{}; ///< messages dropped, by unreachable_because
  std::uint64_t relayed_bytes = 0;
  bool operator==(const reachability_counts&) const = default;
};

class reachability {
public:
  using node = std::uint32_t; ///< one incarnation of a machine, as the fabric numbers them
  static constexpr node nobody = 0xffffffff;

  /// `delay`: one way, without jitter.
  reachability(std::uint64_t seed, double hole_punching, std::function<duration(node, node)> delay);

  /// Everybody who is not told of is open.
  void add(node host, std::uint32_t machine, nat_class what);
  void add_relay(node host, std::uint64_t budget_bytes);
  /// `host` died: its connections are gone.
  void forget(node host);

  struct answer {
    enum class kind : std::uint8_t { go, wait, never } what = kind::go;
    node relay = nobody;       ///< go: over this one
    duration ready{};          ///< wait: ask again then
    unreachable_because why{}; ///< never
  };
  /// `from` has `bytes` for `to`. With `go` they are taken from the relay's budget, with `never`
  /// they are counted.
  answer ask(node from, node to, std::uint64_t bytes, duration now);

  nat_class class_of(node host) const noexcept {
    return host < hosts_.size() ? hosts_[host].what : nat_class::open;
  }
  /// The public address from which datagrams of `of` reach `by`, as a number that can only be
  /// compared; 0: none do.
  std::uint64_t address_of(node of, node by) const noexcept;
  /// A relay is there for who needs one.
  bool relay_left() const noexcept;
  const reachability_counts& counts() const noexcept { return counts_; }

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
    std::uint32_t relay = 0; // of relayed: index
    duration ready{};
  };

  bool punched(node a, node b) const;
  relay* nearest(node from, node to);

  std::uint64_t seed_;
  double hole_punching_;
  std::function<duration(node, node)> delay_;
  std::vector<host> hosts_;
  std::vector<relay> relays_;
  flat_map<connection> connections_; // by the pair, smaller host first
  reachability_counts counts_;
};

} // namespace shoal::netem
