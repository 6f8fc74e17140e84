// Records that only their owner can replace. A record's owner is a member of the swarm: its host
// signs the record with the certificate's key (actors/trust/identity.hpp). Replicas and readers
// check the signature.
//   signature = the owner's, of statement("shoal.record", key, sub-key, address, value, expiration,
//   version, withdrawn, owner)
//
// A record's address is an actor of the owner's own host, and a sub-key that names a peer names the
// peer at that address (record_rules.hpp). So no member has a record in another one's name.
#pragma once

#include "actors/dht/messages.hpp"
#include "actors/host.hpp"

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
  /// Remembers at least the last `least` records and at most twice as many. A few records for each
  /// node are enough, because all replicas check a record within moments.
  explicit signature_cache(std::size_t least = 1 << 14) : least_(least) {}
  bool knows(std::string_view key, const signed_record& what) const;
  void add(std::string_view key, const signed_record& what);

private:
  struct known {
    std::string key;
    signed_record what;       // without the address, which the cache would keep in memory
    caf::actor_id number = 0; // actor id of the address
    caf::node_id node;
  };
  const std::size_t least_;
  mutable std::mutex mutex_;
  // The index is a word of the signature. Never iterated.
  using records = std::unordered_map<std::uint64_t, known>;
  records young_, old_;
};

/// Signs a record in the name of the host's member. If `signatures` is not null, the result enters
/// it. Requires: the entry's address is empty or on that host.
signed_record sign_record(const host& by, std::string_view key, record entry, std::uint64_t version,
                          bool withdrawn, signature_cache* signatures = nullptr);

/// Why the record cannot be its owner's word for `key`; empty if it is. `signatures` may be null.
std::string_view not_genuine(const host& reader, std::string_view key, const signed_record& what,
                             signature_cache* signatures);

/// Orders two records of one owner. The later version is newer, whatever its expiration: a clock
/// that was ahead must not have the last word. Equal versions compare by expiration, then a
/// withdrawal is newer.
bool is_newer(const signed_record& a, const signed_record& b);

} // namespace shoal::actors
