// Who is admitted to a swarm: certificates (X.509 v3, Ed25519) that its moderator issued for a
// limited time, and the moderator's list of those that it took back (X.509 v2 CRL). Reading and
// checking; moderator.hpp makes them. Everything here takes bytes from strangers: any input is
// answered with a value or an error. No clock: times are given. Source: RFC 5280 (certificates,
// lists), RFC 8410 (Ed25519 in them), RFC 2986 (requests).
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/signing_key.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::netem::wire {

/// A name of a swarm or a node: it is a DNS name in a certificate and part of file names. Up to 63
/// letters, digits, '-',
/// '.' and '_'; the first and the last are letters or digits, and no two dots follow each other.
/// Errors: another one.
result<void> check_name(std::string_view name);

/// '2026-11-21T21:00:00Z'; fractions of a second are left out.
std::string utc_text(std::int64_t utc_ns);
/// The reverse. Errors: anything else.
result<std::int64_t> parse_utc(std::string_view text);

struct certificate_facts {
  std::string name;   ///< of the node; of the swarm in a moderator's certificate
  std::string issuer; ///< the swarm's name, as the certificate says; check_issued() proves it
  std::string serial; ///< lower-case hexadecimal digits
  public_key_bytes public_key{};
  std::int64_t not_before_utc_ns = 0, not_after_utc_ns = 0;
  bool moderator = false; ///< may issue certificates
  bool operates = false;  ///< may tell nodes to leave (shoal drain)
};

/// What an operator's certificate has among its alternative names.
inline constexpr const char* operator_mark = "shoal:operator";

/// What a certificate says, proved or not. Errors: no PEM, no certificate, not Ed25519, a name as
/// check_name() refuses.
result<certificate_facts> read_certificate(std::string_view pem);

/// What a request says: its sender has the private key. Nothing else in a request counts.
struct request_facts {
  std::string name;
  public_key_bytes public_key{};
};

/// Errors: as read_certificate(); a signature that is not that of the key in it.
result<request_facts> read_request(std::string_view pem);

/// PEM ('CERTIFICATE REQUEST'). Requires: check_name(name).
std::string make_request(std::string_view name, const signing_key& key);

/// Errors: not a moderator's certificate: not self-signed, may not issue, expired or not yet valid
/// at `utc_ns`.
result<void> check_moderator(std::string_view ca_pem, std::int64_t utc_ns);

/// Whether `pem` is the certificate of a node that this moderator admitted, valid at `utc_ns`.
/// Revocation is apart. Errors, each with its own sentence: self-signed, of another moderator, a
/// forged signature, one that may itself issue, not for TLS clients and servers, not the name it is
/// for, expired, not yet valid; what check_moderator() refuses.
result<void> check_issued(std::string_view pem, std::string_view ca_pem, std::int64_t utc_ns);

/// The certificates that the moderator took back. Of two lists the one with the higher number
/// counts; a list does not expire before the moderator does. Thread safety: immutable.
class revocation_list {
public:
  struct entry {
    std::string serial;
    std::int64_t utc_ns = 0; ///< when it was revoked
    auto operator<=>(const entry&) const = default;
  };

  /// Errors: no PEM, no list, signed by another or changed since, without a number, for a part of
  /// the certificates only.
  static result<revocation_list> read(std::string_view pem, std::string_view ca_pem);

  /// Counts from 1.
  std::uint64_t number() const noexcept { return number_; }
  /// Complexity: logarithmic.
  bool revoked(std::string_view serial) const;
  /// By serial.
  const std::vector<entry>& entries() const noexcept { return entries_; }
  /// The swarm's name.
  const std::string& issuer() const noexcept { return issuer_; }
  /// Some minutes before it was made: thisUpdate, see clock_allowance in moderator.hpp.
  std::int64_t from_utc_ns() const noexcept { return from_utc_ns_; }
  const std::string& pem() const noexcept { return pem_; }

private:
  revocation_list() = default;
  std::uint64_t number_ = 0;
  std::int64_t from_utc_ns_ = 0;
  std::vector<entry> entries_;
  std::string issuer_, pem_;
};

} // namespace shoal::netem::wire
