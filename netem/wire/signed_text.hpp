// A text under a node's name that whoever has the swarm's certificate can check, also when the node
// is gone: what it has contributed. As one file: the text, 'signature: ' with 128 hexadecimal
// digits, and the node's certificate in PEM.
//   signature = Ed25519("shoal.signed_text\0" kind "\0" text), RFC 8032
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/signing_key.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::netem::wire {

/// Requires: `text` ends with a line feed, and the certificate is of this key. `kind` says what
/// such texts are.
std::string sign_text(std::string_view kind, std::string_view text, const signing_key& key,
                      std::string_view certificate_pem);

struct signed_text {
  std::string text;
  std::string name;   ///< of the node
  std::string serial; ///< of its certificate
};

/// Errors: not such a file, another kind or changed since, a certificate that check_issued()
/// refuses at `utc_ns`. Whether it was revoked since is for the caller to say: `serial`.
result<signed_text> read_signed_text(std::string_view file, std::string_view kind,
                                     std::string_view ca_pem, std::int64_t utc_ns);

} // namespace shoal::netem::wire
