// A text that a node has signed, such as the record of its contribution. Everybody who has the
// swarm's certificate can check the text, even after the node is gone. The file holds the text, a
// line 'signature: ' with 128 hexadecimal digits, and the node's certificate in PEM.
//   signature = Ed25519("shoal.signed_text\0" kind "\0" text), RFC 8032
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/signing_key.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::netem::wire {

/// Requires: `text` ends with a line feed; the certificate belongs to the key. `kind` names the
/// type of the text.
std::string sign_text(std::string_view kind, std::string_view text, const signing_key& key,
                      std::string_view certificate_pem);

struct signed_text {
  std::string text;
  std::string name;   ///< the node's name
  std::string serial; ///< the serial of the node's certificate
};

/// Reads and verifies a signed text. The caller checks `serial` against a revocation list.
/// Errors: not such a file, another kind, a changed text, a certificate that check_issued() refuses
/// at `utc_ns`.
result<signed_text> read_signed_text(std::string_view file, std::string_view kind,
                                     std::string_view ca_pem, std::int64_t utc_ns);

} // namespace shoal::netem::wire
