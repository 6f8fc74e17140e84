// The keys that a swarm admits, as far as this process has seen their certificates. A newer
// revocation list takes keys away.
// Thread safety: all.
#pragma once

#include "actors/ids.hpp"
#include "netem/wire/admission.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace shoal::scenarios {

class admitted_keys {
public:
  /// `admits` checks the certificates. Requires: not null.
  explicit admitted_keys(std::shared_ptr<const netem::wire::admission> admits);

  /// True if the swarm admits `key` at `utc_ns`. An empty certificate asks for what is known; a
  /// certificate of another key counts as empty.
  bool admits(const actors::key256& key, std::string_view certificate, std::int64_t utc_ns);
  /// The certificate of a key that admits() has accepted and no list has revoked; empty if there is
  /// none.
  std::string certificate_of(const actors::key256& key, std::int64_t utc_ns);

private:
  void forget_revoked(std::int64_t utc_ns);

  const std::shared_ptr<const netem::wire::admission> admission_;
  std::mutex mutex_;       // guards the members below
  std::uint64_t list_ = 0; // the number of the list that known_ was checked against
  std::map<actors::key256, std::string> known_; // certificates that were valid, by key
};

} // namespace shoal::scenarios
