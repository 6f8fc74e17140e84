// Points of the DHT's id space: nodes and keys, 160 bits each.
//
// A node's id is its member's id (128 bits), and then 32 bits that tell the member's incarnations
// apart. So a member has one place in the id space, which its certificate's key fixes. The id of a
// node follows from its address, so nobody needs to believe an id that a message states.
// Source: Maymounkov and Mazieres, "Kademlia: A Peer-to-peer Information System Based on the XOR
// Metric", IPTPS 2002.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/rng.hpp"

#include <caf/node_id.hpp>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::actors {

struct node_id {
  static constexpr unsigned bits = 160;

  std::uint64_t high = 0;
  std::uint64_t middle = 0;
  std::uint32_t low = 0;

  auto operator<=>(const node_id&) const = default;
  bool is_zero() const noexcept { return high == 0 && middle == 0 && low == 0; }
  /// 40 lower-case hexadecimal digits.
  std::string hex() const;

  /// The id of the member's node whose address has this CAF node.
  static node_id of_host(const member_id& member, const caf::node_id& node) noexcept;
  /// The member that a node with this id belongs to.
  member_id member() const noexcept { return {high, middle}; }

  /// The first 160 bits of a BLAKE2b-256 digest.
  static node_id from(const digest& value) noexcept;
  /// The point near which the records of `key` are kept.
  static node_id of_key(std::string_view key);

  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, node_id& x) {
    return f(x.high, x.middle, x.low);
  }
};

/// The XOR metric: d(a, b) = a ^ b, compared as a number.
constexpr node_id distance(const node_id& a, const node_id& b) noexcept {
  return {a.high ^ b.high, a.middle ^ b.middle, a.low ^ b.low};
}

/// The number of equal leading bits: 0 to 160.
unsigned common_prefix(const node_id& a, const node_id& b) noexcept;

/// A random id that has exactly `prefix` leading bits in common with `of`. Requires: prefix < 160.
node_id random_at(const node_id& of, unsigned prefix, rng& draws);

} // namespace shoal::actors
