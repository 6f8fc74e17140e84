// Records that only their owner can replace. A node signs what it stores with its Ed25519 key; replicas and
// readers check the signature, and a (key, sub-key) belongs to whoever stored it first, until it expires.
//   signature = Ed25519(BLAKE2b-256(key, sub-key, address, value, expiration, version, withdrawn, owner))
// Source: RFC 8032, by libsodium.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "actors/messages.hpp"
#include "kernels/base/rng.hpp"

namespace shoal::actors {

/// A key pair. Drawn from a host's random stream: a host that keeps secrets has to give an unpredictable one.
class identity {
 public:
  explicit identity(rng seed);
  const key256& public_key() const noexcept { return public_; }
  /// The id of the node that has this key: BLAKE2b of the public key.
  node_id id() const;
  signed_record sign(std::string_view key, record entry, std::uint64_t version, bool withdrawn) const;

 private:
  key256 public_;
  std::array<unsigned char, 64> secret_{};
};

/// Signatures found good in this process. Checking costs 0.1 ms; in a simulation a thousand nodes check the same one.
/// Thread safety: may be shared between threads.
class signature_memo {
 public:
  /// Remembers at least the last `least` of them and at most twice as many. A few for each node is enough: all replicas
  /// check a record within moments.
  explicit signature_memo(std::size_t least = 1 << 14) : least_(least) {}
  bool knows(const digest& text, const std::array<unsigned char, 64>& signature) const;
  void add(const digest& text, const std::array<unsigned char, 64>& signature);

 private:
  struct prefix {
    std::size_t operator()(const digest& d) const noexcept { return d.prefix(); }
  };
  const std::size_t least_;
  mutable std::mutex mutex_;
  using signatures = std::unordered_map<digest, std::array<unsigned char, 64>, prefix>;  // by what they sign; never iterated
  signatures young_, old_;
};

/// What was just signed here is genuine.
void remember_own(std::string_view key, const signed_record& what, signature_memo& memo);

/// Whether `what` was signed by its owner for `key`. `memo` may be null.
bool is_genuine(std::string_view key, const signed_record& what, signature_memo* memo);

/// Of two records of one owner: the later version, whatever its expiration (a clock that was ahead must not have the last word),
/// of equals the one that expires later, of equals the withdrawal.
bool is_newer(const signed_record& a, const signed_record& b);

}  // namespace shoal::actors
