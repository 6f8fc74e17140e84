// Records that only their owner can replace. A node signs the records that it stores with its
// Ed25519 key. Replicas and readers check the signature. A (key, sub-key) belongs to its first
// owner until the record expires.
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

/// A cache of records that were found genuine in this process. Checking a signature takes 0.1 ms,
/// and in a simulation a thousand nodes check the same record. The cache changes how long a
/// simulation takes, never its result. Thread safety: threads may share an object.
class signature_cache {
public:
  /// With `stand_in`, signing writes a keyed hash of the same length instead of a signature. A
  /// signature takes 40 us, and a simulation makes millions. Every node of the process can check
  /// the hash. Requires for `stand_in`: no real hosts take part.
  enum class signing : std::uint8_t { real, stand_in };

  /// Remembers at least the last `least` records and at most twice as many. A few records for each
  /// node are enough, because all replicas check a record within moments.
  explicit signature_cache(std::size_t least = 1 << 14, signing how = signing::real)
      : least_(least), how_(how) {}
  bool knows(std::string_view key, const signed_record& what) const;
  void add(std::string_view key, const signed_record& what);
  signing how() const noexcept { return how_; }

private:
  struct known {
    std::string key;
    signed_record what;       // without the address, which the cache would keep in memory
    caf::actor_id number = 0; // actor id of the address
    caf::node_id node;
  };
  const std::size_t least_;
  const signing how_;
  mutable std::mutex mutex_;
  // The index is a word of the signature. Never iterated.
  using records = std::unordered_map<std::uint64_t, known>;
  records young_, old_;
};

/// A key pair, drawn from a host's random stream. A host with secrets needs an unpredictable
/// stream.
class identity {
public:
  explicit identity(rng seed);
  const key256& public_key() const noexcept { return public_; }
  /// The id of the node with this key: BLAKE2b of the public key.
  node_id id() const;
  /// Signs a record. If `signatures` is not null, the result enters it.
  signed_record sign(std::string_view key, record entry, std::uint64_t version, bool withdrawn,
                     signature_cache* signatures = nullptr) const;

private:
  key256 public_;
  std::array<unsigned char, 64> secret_{};
};

/// True if the owner in `what` signed it for `key`. `signatures` may be null.
bool is_genuine(std::string_view key, const signed_record& what, signature_cache* signatures);

/// Orders two records of one owner. The later version is newer, whatever its expiration: a clock
/// that was ahead must not have the last word. Equal versions compare by expiration, then a
/// withdrawal is newer.
bool is_newer(const signed_record& a, const signed_record& b);

} // namespace shoal::actors
