// The interface to the keys of a swarm: it checks certificates and keeps the revocation list.
// credentials.hpp has the implementation.
#pragma once

#include "netem/wire/refusal.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace shoal::netem::wire {

/// The time by which certificates are checked: nanoseconds since 1970 in UTC.
inline std::int64_t utc_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// The outcome of an offered revocation list.
enum class revocation_list_news : std::uint8_t { taken, known, old, forged };

/// The holder of a good certificate.
struct certified_member {
  std::string name;
  std::string identity; ///< the 32 bytes of its public key
};

/// Checks certificates of other hosts. Thread safety: all.
class admission {
public:
  virtual ~admission() = default;
  /// Checks whether the holder of `certificate` (PEM) may take part. Sets `who` if so.
  virtual refusal check(const std::string& certificate, std::int64_t utc_ns, certified_member& who,
                        std::string& detail) const = 0;
  /// The number of the newest revocation list that this host has, from whichever source.
  virtual std::uint64_t revocation_list_number() const = 0;
  /// The newest revocation list, as PEM.
  virtual std::string revocation_list_pem() const = 0;
  /// Offers the revocation list of another host. A newer list that the moderator signed takes
  /// effect at once, and is saved for the next start. `detail` says why the list could not be
  /// saved.
  virtual revocation_list_news offer(const std::string& list, std::string& detail) const = 0;
};

} // namespace shoal::netem::wire
