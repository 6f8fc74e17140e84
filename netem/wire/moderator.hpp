// A swarm's moderator: an Ed25519 key with a certificate that it signed itself. Admits nodes for a
// limited time and takes certificates back. What it makes is checked in certificates.hpp, by
// everybody else.
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

/// Certificates and lists are valid from so long before they are made: volunteers' clocks are late
/// by minutes.
inline constexpr duration clock_allowance = std::chrono::minutes(5);

/// Thread safety: const members may be called from several threads.
class moderator {
public:
  /// A new one. Errors: a name as check_name() refuses, a validity below 1 s or beyond the year
  /// 2261.
  static result<moderator> make(std::string_view swarm, std::int64_t utc_ns, duration validity);
  /// Errors: what signing_key::read() and check_moderator() refuse, and a key that is not the
  /// certificate's.
  static result<moderator> read(std::string_view key_pem, std::string_view certificate_pem,
                                std::int64_t utc_ns);

  const certificate_facts& facts() const noexcept { return facts_; }
  const std::string& certificate_pem() const noexcept { return certificate_pem_; }
  secret_text key_pem() const { return key_.pem(); }

  /// The certificate (PEM) of node `name` with that key, with a random serial. It does not outlive
  /// the moderator's own. `operates`: it may tell others to leave. Errors: as make(); the swarm's
  /// own name, which would make the node look like the moderator.
  result<std::string> admit(std::string_view name, const public_key_bytes& key, std::int64_t utc_ns,
                            duration validity, bool operates = false) const;

  /// The first list (PEM): number 1, empty.
  std::string first_list(std::int64_t utc_ns) const;
  /// The next list: what `now` has, and `serials`. Errors: a serial that is none; `now` has the
  /// last number there is.
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
