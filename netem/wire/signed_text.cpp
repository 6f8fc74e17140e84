#include "netem/wire/signed_text.hpp"

#include "kernels/base/text_fields.hpp"
#include "netem/wire/certificates.hpp"

#include <vector>

namespace shoal::netem::wire {

namespace {

constexpr std::string_view mark = "signature: ";

std::vector<std::byte> what_is_signed(std::string_view kind, std::string_view text) {
  std::string all = "shoal.signed_text";
  all += '\0';
  all += kind;
  all += '\0';
  all += text;
  const auto bytes = std::as_bytes(std::span(all));
  return {bytes.begin(), bytes.end()};
}

} // namespace

std::string sign_text(std::string_view kind, std::string_view text, const signing_key& key,
                      std::string_view certificate_pem) {
  std::string out(text);
  out += mark;
  out += hex_of(key.sign(what_is_signed(kind, text)));
  out += '\n';
  out += certificate_pem;
  return out;
}

result<signed_text> read_signed_text(std::string_view file, std::string_view kind,
                                     std::string_view ca_pem, std::int64_t utc_ns) {
  // The text may contain the mark itself, so the last mark counts.
  const auto at = file.rfind(std::string("\n") + std::string(mark));
  if (at == std::string_view::npos)
    return failure{"it is not signed: no line begins with 'signature: '"};
  signed_text out;
  out.text = file.substr(0, at + 1);
  const auto rest = file.substr(at + 1 + mark.size());
  const auto end = rest.find('\n');
  signature_bytes signature;
  if (!read_hex(rest.substr(0, end), signature) || end == std::string_view::npos)
    return failure{"its signature is damaged"};
  const auto certificate = rest.substr(end + 1);
  const auto facts = read_certificate(certificate);
  if (!facts) return failure{"the certificate in it: " + facts.error()};
  if (auto fine = check_issued(certificate, ca_pem, utc_ns); !fine)
    return failure{"the certificate in it: " + fine.error()};
  if (!verify(facts->public_key, what_is_signed(kind, out.text), signature))
    return failure{"it was changed after '" + facts->name + "' signed it, or is something else"};
  out.name = facts->name;
  out.serial = facts->serial;
  return out;
}

} // namespace shoal::netem::wire
