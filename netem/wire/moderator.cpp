#include "netem/wire/moderator.hpp"

#include "netem/wire/pem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace shoal::netem::wire {

namespace {

/// 128 random bits. The first bit is set, so all serials have the same number of digits.
pem::integer random_serial() {
  const pem::big_number number(BN_new());
  pem::must(number != nullptr &&
                BN_rand(number.get(), 128, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1,
            "no randomness");
  pem::integer out(BN_to_ASN1_INTEGER(number.get(), nullptr));
  pem::must(out != nullptr, "OpenSSL has no memory");
  return out;
}

/// Errors: a validity below 1 s or beyond the dates that certificates.hpp supports.
result<std::int64_t> end_of(std::int64_t utc_ns, duration validity) {
  if (validity < std::chrono::seconds(1))
    return failure{fmt::format("a validity of {} is too short: at least 1s", to_string(validity))};
  constexpr std::int64_t last = 9'183'110'400'000'000'000; // the beginning of the year 2261
  if (validity.count() > last - utc_ns)
    return failure{fmt::format("a validity of {} is too long: it ends after the year 2260",
                               to_string(validity))};
  return utc_ns + validity.count();
}

void add_extension(X509& to, X509V3_CTX& context, int nid, const std::string& value) {
  const pem::extension one(X509V3_EXT_nconf_nid(nullptr, &context, nid, value.c_str()));
  pem::must(one != nullptr && X509_add_ext(&to, one.get(), -1) == 1,
            "OpenSSL cannot write an extension");
}

/// All but the extensions and the signature.
pem::certificate begin_certificate(std::string_view name, EVP_PKEY* key, std::int64_t from_utc_ns,
                                   std::int64_t until_utc_ns) {
  pem::certificate out(X509_new());
  pem::must(out != nullptr, "OpenSSL has no memory");
  const pem::integer serial = random_serial();
  const pem::time from = pem::time_from(from_utc_ns), until = pem::time_from(until_utc_ns);
  pem::set_common_name(*X509_get_subject_name(out.get()), name);
  pem::must(X509_set_version(out.get(), X509_VERSION_3) == 1 &&
                X509_set_serialNumber(out.get(), serial.get()) == 1 &&
                X509_set1_notBefore(out.get(), from.get()) == 1 &&
                X509_set1_notAfter(out.get(), until.get()) == 1 &&
                X509_set_pubkey(out.get(), key) == 1,
            "OpenSSL cannot make a certificate");
  return out;
}

} // namespace

result<moderator> moderator::make(std::string_view swarm, std::int64_t utc_ns, duration validity) {
  if (auto fine = check_name(swarm); !fine) return failure{fine.error()};
  const auto until = end_of(utc_ns, validity);
  if (!until) return failure{until.error()};
  const pem::quiet errors;
  signing_key key = signing_key::make();
  const pem::certificate out =
      begin_certificate(swarm, key.handle(), utc_ns - clock_allowance.count(), *until);
  pem::must(X509_set_issuer_name(out.get(), X509_get_subject_name(out.get())) == 1,
            "OpenSSL has no memory");
  X509V3_CTX context;
  X509V3_set_ctx(&context, out.get(), out.get(), nullptr, nullptr, 0);
  add_extension(*out, context, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(*out, context, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(*out, context, NID_subject_key_identifier, "hash");
  pem::must(X509_sign(out.get(), key.handle(), nullptr) > 0, "OpenSSL cannot sign a certificate");
  std::string text = pem::write(*out);
  auto facts = read_certificate(text);
  SHOAL_CHECK(facts.ok(), "a new certificate cannot be read");
  return moderator(std::move(key), *std::move(facts), std::move(text));
}

result<moderator> moderator::read(std::string_view key_pem, std::string_view certificate_pem,
                                  std::int64_t utc_ns) {
  auto key = signing_key::read(key_pem);
  if (!key) return failure{"the moderator's key: " + key.error()};
  if (auto fine = check_moderator(certificate_pem, utc_ns); !fine) return failure{fine.error()};
  auto facts = read_certificate(certificate_pem);
  if (!facts) return failure{facts.error()};
  if (facts->public_key != key->public_key())
    return failure{
        fmt::format("the key is not that of the moderator's certificate of '{}'", facts->name)};
  return moderator(*std::move(key), *std::move(facts), std::string(certificate_pem));
}

result<std::string> moderator::admit(std::string_view name, const public_key_bytes& key,
                                     std::int64_t utc_ns, duration validity, bool operates) const {
  if (auto fine = check_name(name); !fine) return failure{fine.error()};
  if (name == facts_.name)
    return failure{fmt::format("'{}' is the name of the swarm: a node needs another one", name)};
  const auto until = end_of(utc_ns, validity);
  if (!until) return failure{until.error()};
  const pem::quiet errors;
  const auto* bytes = reinterpret_cast<const unsigned char*>(key.data());
  const pem::key node(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes, key.size()));
  const auto ca = pem::read_certificate(certificate_pem_);
  SHOAL_CHECK(node != nullptr && ca.ok(), "a key or a certificate that was read before");
  const std::int64_t from = std::max(utc_ns - clock_allowance.count(), facts_.not_before_utc_ns);
  const pem::certificate out =
      begin_certificate(name, node.get(), from, std::min(*until, facts_.not_after_utc_ns));
  pem::must(X509_set_issuer_name(out.get(), X509_get_subject_name(ca->get())) == 1,
            "OpenSSL has no memory");
  X509V3_CTX context;
  X509V3_set_ctx(&context, ca->get(), out.get(), nullptr, nullptr, 0);
  add_extension(*out, context, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(*out, context, NID_key_usage, "critical,digitalSignature");
  add_extension(*out, context, NID_ext_key_usage, "clientAuth,serverAuth");
  add_extension(*out, context, NID_subject_key_identifier, "hash");
  add_extension(*out, context, NID_authority_key_identifier, "keyid:always");
  add_extension(
      *out, context, NID_subject_alt_name,
      fmt::format("DNS:{}{}{}", name, operates ? ",URI:" : "", operates ? operator_mark : ""));
  pem::must(X509_sign(out.get(), key_.handle(), nullptr) > 0, "OpenSSL cannot sign a certificate");
  return pem::write(*out);
}

std::string moderator::first_list(std::int64_t utc_ns) const {
  return list(1, {}, utc_ns);
}

result<std::string> moderator::revoke(const revocation_list& now,
                                      std::span<const std::string> serials,
                                      std::int64_t utc_ns) const {
  if (now.number() == std::numeric_limits<std::uint64_t>::max())
    return failure{"the revocation list has the last number there is"};
  std::vector<revocation_list::entry> entries = now.entries();
  for (const std::string& serial : serials) {
    const pem::integer number = pem::serial_from(serial);
    if (number == nullptr)
      return failure{
          fmt::format("'{}' is not a serial number: use up to 40 hexadecimal digits", serial)};
    const std::string plain = *pem::serial_text(*number); // without leading zeros
    if (!now.revoked(plain)) entries.push_back({plain, utc_ns});
  }
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  return list(now.number() + 1, entries, utc_ns);
}

std::string moderator::list(std::uint64_t number, std::span<const revocation_list::entry> entries,
                            std::int64_t utc_ns) const {
  const pem::quiet errors;
  const pem::revoked_list out(X509_CRL_new());
  const auto ca = pem::read_certificate(certificate_pem_);
  SHOAL_CHECK(out != nullptr && ca.ok(), "a certificate that was read before");
  const pem::time from =
      pem::time_from(std::max(utc_ns - clock_allowance.count(), facts_.not_before_utc_ns));
  const pem::time until = pem::time_from(facts_.not_after_utc_ns);
  pem::must(X509_CRL_set_version(out.get(), X509_CRL_VERSION_2) == 1 &&
                X509_CRL_set_issuer_name(out.get(), X509_get_subject_name(ca->get())) == 1 &&
                X509_CRL_set1_lastUpdate(out.get(), from.get()) == 1 &&
                X509_CRL_set1_nextUpdate(out.get(), until.get()) == 1,
            "OpenSSL cannot make a revocation list");
  for (const revocation_list::entry& what : entries) {
    const pem::integer serial = pem::serial_from(what.serial);
    const pem::time when = pem::time_from(what.utc_ns);
    X509_REVOKED* one = X509_REVOKED_new();
    // The list owns an entry once it has taken the entry. A failure ends the program, so no entry
    // leaks.
    pem::must(one != nullptr && serial != nullptr &&
                  X509_REVOKED_set_serialNumber(one, serial.get()) == 1 &&
                  X509_REVOKED_set_revocationDate(one, when.get()) == 1 &&
                  X509_CRL_add0_revoked(out.get(), one) == 1,
              "OpenSSL cannot revoke");
  }
  X509V3_CTX context;
  X509V3_set_ctx(&context, ca->get(), nullptr, nullptr, out.get(), 0);
  const pem::extension issuer(
      X509V3_EXT_nconf_nid(nullptr, &context, NID_authority_key_identifier, "keyid:always"));
  const pem::integer count(ASN1_INTEGER_new());
  pem::must(
      issuer != nullptr && count != nullptr && X509_CRL_add_ext(out.get(), issuer.get(), -1) == 1 &&
          ASN1_INTEGER_set_uint64(count.get(), number) == 1 &&
          X509_CRL_add1_ext_i2d(out.get(), NID_crl_number, count.get(), 0, 0) == 1 &&
          X509_CRL_sort(out.get()) == 1 && X509_CRL_sign(out.get(), key_.handle(), nullptr) > 0,
      "OpenSSL cannot sign a revocation list");
  return pem::write(*out);
}

} // namespace shoal::netem::wire
