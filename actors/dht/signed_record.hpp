// Records that only their owner can replace. A node signs what it stores with its Ed25519 key;
// replicas and readers check the signature, and a (key, sub-key) belongs to whoever stored it
// first, until it expires.
//   signature = Ed25519(BLAKE2b-256(key, sub-key, address, value, expiration, version, withdrawn,
//   owner))
// Source: RFC 8032, by libsodium.
#pragma once

#include "actors/dht/messages.hpp"
#include "kernels/base/rng.hpp"

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace shoal::actors {

/// Records found genuine in this process. Checking a signature costs 0.1 ms; in a simulation a
/// thousand nodes check the same one. It changes how long a simulation takes, never what happens in
/// it. Thread safety: may be shared between threads.
class signature_memo {
public:
  /// `stand_in`: those who sign with this memo write a keyed hash of the same length instead (a
  /// signature takes 40 us, and a simulation that is one process makes millions), which everybody
  /// who has the memo can check. Never where real hosts meet.
  enum class signing : std::uint8_t { real, stand_in };

  /// Remembers at least the last `least` records and at most twice as many. A few for each node is
  /// enough: all replicas check a record within moments.
  explicit signature_memo(std::size_t least = 1 << 14, signing how = signing::real)
      : least_(least), how_(how) {}
  bool knows(std::string_view key, const signed_record& what) const;
  void add(std::string_view key, const signed_record& what);
  signing how() const noexcept { return how_; }

private:
  struct known {
    std::string key;
    signed_record what;       // without the address: a memo keeps nobody in memory
    caf::actor_id number = 0; // of the address
    caf::node_id node;
  };
  const std::size_t least_;
  const signing how_;
  mutable std::mutex mutex_;
  using records =
      std::unordered_map<std::uint64_t, known>; // by a word of the signature; never iterated
  records young_, old_;
};

/// A key pair. Drawn from a host's random stream: a host that keeps secrets has to give an
/// unpredictable one.
class identity {
public:
  explicit identity(rng seed);
  const key256& public_key() const noexcept { return public_; }
  /// The id of the node that has this key: BLAKE2b of the public key.
  node_id id() const;
  /// `memo`, if there is one, knows it from then on.
  signed_record sign(std::string_view key, record entry, std::uint64_t version, bool withdrawn,
                     signature_memo* memo = nullptr) const;

private:
  key256 public_;
  std::array<unsigned char, 64> secret_{};
};

/// Whether `what` was signed by its owner for `key`. `memo` may be null.
bool is_genuine(std::string_view key, const signed_record& what, signature_memo* memo);

/// Of two records of one owner: the later version, whatever its expiration (a clock that was ahead
/// must not have the last word), of equals the one that expires later, of equals the withdrawal.
bool is_newer(const signed_record& a, const signed_record& b);

} // namespace shoal::actors
