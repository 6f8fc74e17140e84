// Names of things that cross hosts. All are integers, so that they serialize exactly.
#pragma once

#include "kernels/base/digest.hpp"

#include <compare>
#include <cstdint>
#include <string>

namespace shoal::actors {

/// The identity of a peer, stable for one incarnation of one host. The smallest id breaks ties in
/// the choice of a leader.
using peer_id = std::uint64_t;

/// 128 bits that name a model state or a group: the first half of a BLAKE2b-256 digest.
struct id128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const id128&) const = default;
  bool is_zero() const noexcept { return high == 0 && low == 0; }
  /// 32 lower-case hexadecimal digits.
  std::string hex() const;
  static id128 from(const digest& value) noexcept;

  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, id128& x) {
    return f(x.high, x.low);
  }
};

/// A member of the swarm: the first 128 bits of BLAKE2b-256 of its public key. A member keeps its
/// id over restarts; a peer_id names one incarnation (actors/trust/identity.hpp).
using member_id = id128;

/// hash(previous state_id, group id, senders and weights of each part). Two peers with equal state
/// ids hold the same bits.
using state_id = id128;
using group_id = id128;

/// 256 bits: a public key, or one half of a signature.
struct key256 {
  std::uint64_t a = 0, b = 0, c = 0, d = 0;
  auto operator<=>(const key256&) const = default;

  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, key256& x) {
    return f(x.a, x.b, x.c, x.d);
  }
};

/// An Ed25519 signature: 64 bytes.
struct signature {
  key256 r, s;
  auto operator<=>(const signature&) const = default;

  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, signature& x) {
    return f(x.r, x.s);
  }
};

/// The `count` sample indices from `first` on.
struct sample_range {
  std::uint64_t first = 0;
  std::uint32_t count = 0;

  auto operator<=>(const sample_range&) const = default;
  std::uint64_t end() const noexcept { return first + count; }

  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, sample_range& x) {
    return f(x.first, x.count);
  }
};

} // namespace shoal::actors
