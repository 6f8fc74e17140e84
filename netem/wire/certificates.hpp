// Reads and checks the certificates of a swarm (X.509 v3, Ed25519) and its revocation list (X.509
// v2 CRL).
//
// The moderator issues a certificate to each admitted node for a limited time, and revokes
// certificates by a list. moderator.hpp creates both. All functions take bytes from strangers: they
// answer any input with a value or an error. They read no clock; the caller passes the time.
// Source: RFC 5280 (certificates, lists), RFC 8410 (Ed25519 in them), RFC 2986 (requests).
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/signing_key.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::netem::wire {

/// Checks the name of a swarm or a node. A name is a DNS name in certificates and a part of file
/// names: up to 63 letters, digits, '-', '.' and '_'. The first and the last character are letters
/// or digits, and no two dots follow each other.
/// Errors: any other name.
result<void> check_name(std::string_view name);

/// Formats a time as '2026-11-21T21:00:00Z', without fractions of a second.
std::string utc_text(std::int64_t utc_ns);
/// The inverse of utc_text(). Errors: any other format.
result<std::int64_t> parse_utc(std::string_view text);

struct certificate_facts {
  std::string name;   ///< the node's name; the swarm's name in a moderator's certificate
  std::string issuer; ///< the swarm's name that the certificate claims; check_issued() verifies it
  std::string serial; ///< lower-case hexadecimal digits
  public_key_bytes public_key{};
  std::int64_t not_before_utc_ns = 0, not_after_utc_ns = 0;
  bool moderator = false; ///< the certificate may issue others
  bool operates = false;  ///< the node may tell other nodes to leave (shoal drain)
};

/// The alternative name that marks an operator's certificate.
inline constexpr const char* operator_mark = "shoal:operator";

/// Reads the fields of a certificate without verifying them.
/// Errors: no PEM, no certificate, another key type than Ed25519, a name that check_name() refuses.
result<certificate_facts> read_certificate(std::string_view pem);

/// The verified fields of a certificate request: its sender holds the private key. All other fields
/// of a request are ignored.
struct request_facts {
  std::string name;
  public_key_bytes public_key{};
};

/// Errors: as read_certificate(); a signature that does not match the request's key.
result<request_facts> read_request(std::string_view pem);

/// Makes a request in PEM ('CERTIFICATE REQUEST'). Requires: check_name(name).
std::string make_request(std::string_view name, const signing_key& key);

/// Checks a moderator's certificate.
/// Errors: not self-signed, not allowed to issue, expired or not yet valid at `utc_ns`.
result<void> check_moderator(std::string_view ca_pem, std::int64_t utc_ns);

/// Checks that `pem` is a node's certificate that this moderator issued and that is valid at
/// `utc_ns`. The function does not look at revocation lists. Each fault is an error with its own
/// sentence:
/// - self-signed, issued by another moderator, or with a forged signature
/// - allowed to issue, or not for TLS clients and servers
/// - not for the DNS name that it has, expired, or not yet valid
/// - all faults that check_moderator() finds
result<void> check_issued(std::string_view pem, std::string_view ca_pem, std::int64_t utc_ns);

/// The certificates that the moderator has revoked. A list with a higher number replaces one with a
/// lower number. A list is valid as long as the moderator's certificate.
/// Thread safety: immutable.
class revocation_list {
public:
  struct entry {
    std::string serial;
    std::int64_t utc_ns = 0; ///< when it was revoked
    auto operator<=>(const entry&) const = default;
  };

  /// Errors: no PEM, no list, a signature that is not this moderator's, no number, a list that
  /// covers only a part of the certificates.
  static result<revocation_list> read(std::string_view pem, std::string_view ca_pem);

  /// The list's number. The first list has number 1.
  std::uint64_t number() const noexcept { return number_; }
  /// Complexity: logarithmic.
  bool revoked(std::string_view serial) const;
  /// The entries in the order of their serials.
  const std::vector<entry>& entries() const noexcept { return entries_; }
  /// The swarm's name.
  const std::string& issuer() const noexcept { return issuer_; }
  /// The list's thisUpdate field, some minutes before its creation; see clock_allowance in
  /// moderator.hpp.
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
