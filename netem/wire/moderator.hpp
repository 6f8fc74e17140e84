// A swarm's moderator: an Ed25519 key and a self-signed certificate. The moderator admits nodes for
// a limited time, and revokes certificates. certificates.hpp has the checks of what it signs.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"
#include "netem/wire/certificates.hpp"
#include "netem/wire/secret_text.hpp"
#include "netem/wire/signing_key.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shoal::netem::wire {

/// Certificates and lists become valid this long before their creation, since volunteers' clocks
/// may be minutes late.
inline constexpr duration clock_allowance = std::chrono::minutes(5);

/// Thread safety: const members may be called from several threads.
class moderator {
public:
  /// Makes a moderator with a new key. Errors: a name that check_name() refuses, a validity below 1
  /// s or beyond the year 2260.
  static result<moderator> make(std::string_view swarm, std::int64_t utc_ns, duration validity);
  /// Errors: as signing_key::read() and check_moderator(); the key does not belong to the
  /// certificate.
  static result<moderator> read(std::string_view key_pem, std::string_view certificate_pem,
                                std::int64_t utc_ns);

  const certificate_facts& facts() const noexcept { return facts_; }
  const std::string& certificate_pem() const noexcept { return certificate_pem_; }
  secret_text key_pem() const { return key_.pem(); }

  /// Issues a certificate (PEM) with a random serial to node `name` with `key`. It expires with the
  /// moderator's own certificate at the latest. `operates`: the node may tell other nodes to leave.
  /// Errors: as make(); the swarm's own name, which would make the node look like the moderator.
  result<std::string> admit(std::string_view name, const public_key_bytes& key, std::int64_t utc_ns,
                            duration validity, bool operates = false) const;

  /// The first revocation list (PEM), with number 1 and no entries.
  std::string first_list(std::int64_t utc_ns) const;
  /// The next revocation list: the entries of `now`, and `serials`.
  /// Errors: an invalid serial; `now` has the largest possible number.
  result<std::string> revoke(const revocation_list& now, std::span<const std::string> serials,
                             std::int64_t utc_ns) const;

private:
  moderator(signing_key key, certificate_facts facts, std::string pem)
      : key_(std::move(key)), facts_(std::move(facts)), certificate_pem_(std::move(pem)) {}
  std::string list(std::uint64_t number, std::span<const revocation_list::entry> entries,
                   std::int64_t utc_ns) const;

  signing_key key_;
  certificate_facts facts_;
  std::string certificate_pem_;
};

} // namespace shoal::netem::wire
