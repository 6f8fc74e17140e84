// Certificates, requests, revocation lists, keys and signed texts from strangers, as PEM or as the
// DER inside, beside a swarm's own certificate. Accepted inputs keep the rules for names and
// serials, and only certificates of this swarm's moderator are admitted.
#include "netem/wire/certificates.hpp"

#include "netem/wire/signed_text.hpp"
#include "netem/wire/signing_key.hpp"
#include "tests/fuzz/swarm_certificates.hpp"
#include "tests/fuzz/targets.hpp"

namespace shoal::fuzz {

namespace {

using namespace netem::wire;

std::string as_pem(bytes der, std::string_view label) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out = "-----BEGIN " + std::string(label) + "-----\n";
  std::size_t column = 0;
  for (std::size_t at = 0; at < der.size(); at += 3) {
    const auto left = std::min<std::size_t>(3, der.size() - at);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < left ? std::to_integer<std::uint32_t>(der[at + i]) : 0);
    for (std::size_t i = 0; i < 4; ++i) out += i <= left ? digits[bits >> (18 - 6 * i) & 63] : '=';
    if ((column += 4) == 64) {
      out += '\n';
      column = 0;
    }
  }
  return out + (column > 0 ? "\n" : "") + "-----END " + std::string(label) + "-----\n";
}

void check(const certificate_facts& facts) {
  must(check_name(facts.name).ok(), "a name is one");
  must(!facts.serial.empty() && facts.serial.size() <= 40, "a serial is one");
  must(facts.serial.find_first_not_of("0123456789abcdef") == std::string::npos,
       "a serial is hexadecimal");
  const auto text = utc_text(facts.not_after_utc_ns);
  must(!text.empty(), "times can be shown");
}

} // namespace

void certificates(bytes input) {
  front from(input);
  const auto how = from.byte();
  const auto rest = from.rest();
  const bool der = how >= 128;
  const auto pem = [&](std::string_view label) {
    return der ? as_pem(rest, label) : std::string(text_of(rest));
  };
  switch (how % 6) {
  case 0: {
    const auto text = pem("CERTIFICATE");
    // One of three: to read a certificate takes OpenSSL half a millisecond.
    if (how / 6 % 3 == 0) {
      const auto facts = read_certificate(text);
      if (facts) check(*facts);
      if (check_issued(text, swarm_certificate, swarm_now))
        must(facts && facts->issuer == "reef", "who is admitted was issued by the moderator");
    } else if (how / 6 % 3 == 1) {
      if (check_moderator(text, swarm_now))
        must(read_certificate(text).ok(), "who moderates has a certificate");
    } else {
      static_cast<void>(check_issued(node_certificate, text, swarm_now));
    }
    break;
  }
  case 1: {
    const auto facts = read_request(pem("CERTIFICATE REQUEST"));
    if (facts) must(check_name(facts->name).ok(), "a name is one");
    break;
  }
  case 2: {
    const auto list = revocation_list::read(pem("X509 CRL"), swarm_certificate);
    if (!list) break;
    must(list->number() >= 1 && list->issuer() == "reef", "a list of this swarm");
    for (const auto& entry : list->entries())
      must(list->revoked(entry.serial), "who is on it is revoked");
    break;
  }
  case 3: {
    const auto key = signing_key::read(pem("PRIVATE KEY"));
    if (!key) break;
    const auto text = std::as_bytes(std::span("text"));
    must(verify(key->public_key(), text, key->sign(text)), "a key signs");
    break;
  }
  case 4: {
    const auto said = read_signed_text(text_of(rest), "contribution", swarm_certificate, swarm_now);
    if (said)
      must(said->text.ends_with('\n') && said->name == "lab-3", "only lab-3 has a certificate");
    break;
  }
  default: {
    const auto text = text_of(rest);
    if (const auto when = parse_utc(text))
      must(parse_utc(utc_text(*when)).ok() && *parse_utc(utc_text(*when)) == *when,
           "a time reads back");
    static_cast<void>(check_name(text));
    break;
  }
  }
}

} // namespace shoal::fuzz
