// OpenSSL's objects as owning pointers, and conversions of PEM blocks, names, serials and times.
// Only the certificate files include this header, so their users need no OpenSSL.
#pragma once

#include "kernels/base/check.hpp"
#include "kernels/base/result.hpp"
#include "netem/wire/secret_text.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::netem::wire::pem {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* what) const noexcept {
    Free(what);
  }
};

using bio = std::unique_ptr<BIO, freed_by<BIO_free_all>>;
using big_number = std::unique_ptr<BIGNUM, freed_by<BN_free>>;
using integer = std::unique_ptr<ASN1_INTEGER, freed_by<ASN1_INTEGER_free>>;
using time = std::unique_ptr<ASN1_TIME, freed_by<ASN1_TIME_free>>;
using key = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using certificate = std::unique_ptr<X509, freed_by<X509_free>>;
using request = std::unique_ptr<X509_REQ, freed_by<X509_REQ_free>>;
using revoked_list = std::unique_ptr<X509_CRL, freed_by<X509_CRL_free>>;
using extension = std::unique_ptr<X509_EXTENSION, freed_by<X509_EXTENSION_free>>;

/// Discards errors that OpenSSL adds to this thread's queue, since TLS on the same thread reads the
/// queue, too.
class quiet {
public:
  quiet() { ERR_set_mark(); }
  ~quiet() { ERR_pop_to_mark(); }
  quiet(const quiet&) = delete;
  quiet& operator=(const quiet&) = delete;
};

/// Ends the program if an OpenSSL call failed that can fail only without memory or randomness.
inline void must(bool done, const char* what) {
  SHOAL_CHECK(done, what);
}

inline constexpr std::size_t largest_certificate_bytes = 64 << 10;
inline constexpr std::size_t largest_revocation_list_bytes = 16 << 20;

/// The DER bytes of the only block in `text`, which must be a `label` ("CERTIFICATE"). Text before
/// and after the block is allowed, as `openssl x509 -text` writes it. A second block is an error,
/// since TLS would trust a second certificate, too.
/// Errors: no block, several blocks, another label, encrypted, damaged, more than `most` bytes.
result<secret_text> block(std::string_view text, std::string_view label, std::size_t most);

/// The readers below refuse bytes after the object. Errors: as block(); bad DER.
result<certificate> read_certificate(std::string_view text);
result<request> read_request(std::string_view text);
result<revoked_list> read_revoked_list(std::string_view text);
/// Errors: as block(); a key of another type than Ed25519.
result<key> read_key(std::string_view text);

std::string write(const X509& what);
std::string write(const X509_REQ& what);
std::string write(const X509_CRL& what);
secret_text write(const EVP_PKEY& what);

/// The common name, which must be the only part of `name`. Errors: other parts; a name that
/// check_name() refuses.
result<std::string> common_name(const X509_NAME& name);
/// Requires: check_name(name).
void set_common_name(X509_NAME& name, std::string_view text);

/// Formats a serial as lower-case hexadecimal digits. Returns nothing if it is not positive or is
/// longer than 20 bytes (RFC 5280, section 4.1.2.2).
std::optional<std::string> serial_text(const ASN1_INTEGER& serial);
/// Returns null if `text` is not such a serial.
integer serial_from(std::string_view text);

/// Nanoseconds since 1970, clamped to 64 bits (the years 1677 to 2262).
result<std::int64_t> utc_ns(const ASN1_TIME& when);
time time_from(std::int64_t utc_ns);

/// Returns nothing if `key` is not an Ed25519 key.
std::optional<std::array<std::byte, 32>> public_key(const EVP_PKEY* key);

} // namespace shoal::netem::wire::pem
