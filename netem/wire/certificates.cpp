#include "netem/wire/certificates.hpp"

#include "netem/wire/pem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

namespace shoal::netem::wire {

namespace {

using store = std::unique_ptr<X509_STORE, pem::freed_by<X509_STORE_free>>;
using store_context = std::unique_ptr<X509_STORE_CTX, pem::freed_by<X509_STORE_CTX_free>>;

using alternative_names = std::unique_ptr<GENERAL_NAMES, pem::freed_by<GENERAL_NAMES_free>>;

failure not_a(const char* what, const std::string& why) {
  return {fmt::format("not a {}: {}", what, why)};
}

result<certificate_facts> facts_of(X509& what) {
  certificate_facts out;
  auto name = pem::common_name(*X509_get_subject_name(&what));
  if (!name) return not_a("certificate of a node or moderator", name.error());
  out.name = *std::move(name);
  auto issuer = pem::common_name(*X509_get_issuer_name(&what));
  if (!issuer) return not_a("certificate of a swarm", "its issuer: " + issuer.error());
  out.issuer = *std::move(issuer);
  const auto serial = pem::serial_text(*X509_get0_serialNumber(&what));
  if (!serial) return failure{"the certificate's serial number is not one of 1 to 20 bytes"};
  out.serial = *serial;
  const auto key = pem::public_key(X509_get0_pubkey(&what));
  if (!key) return failure{"the certificate's key is of another type: expected Ed25519"};
  out.public_key = *key;
  const auto from = pem::utc_ns(*X509_get0_notBefore(&what)),
             until = pem::utc_ns(*X509_get0_notAfter(&what));
  if (!from || !until) return failure{"the certificate's validity is damaged"};
  out.not_before_utc_ns = *from;
  out.not_after_utc_ns = *until;
  // 0 means that the certificate may not issue others. The other values include obsolete forms of
  // issuers.
  out.moderator = X509_check_ca(&what) != 0;
  const alternative_names names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&what, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int type = 0;
    const auto* value = static_cast<const ASN1_IA5STRING*>(
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &type));
    if (type != GEN_URI) continue;
    const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                                static_cast<std::size_t>(ASN1_STRING_length(value)));
    out.operates = out.operates || text == operator_mark;
  }
  return out;
}

struct certificate_read {
  pem::certificate object;
  certificate_facts facts;
};

result<certificate_read> read(std::string_view text) {
  const pem::quiet errors;
  auto object = pem::read_certificate(text);
  if (!object) return not_a("certificate", object.error());
  auto facts = facts_of(**object);
  if (!facts) return failure{facts.error()};
  return certificate_read{*std::move(object), *std::move(facts)};
}

/// In messages, `whose` names the certificate, as in: the certificate of 'lab-3'.
result<void> check_time(const certificate_facts& what, const std::string& whose,
                        std::int64_t utc_ns) {
  if (utc_ns < what.not_before_utc_ns)
    return failure{fmt::format("{} is not valid before {}, and this machine's clock says {}", whose,
                               utc_text(what.not_before_utc_ns), utc_text(utc_ns))};
  if (utc_ns >= what.not_after_utc_ns) // OpenSSL and TLS count like this
    return failure{fmt::format("{} expired at {}; it is {}", whose, utc_text(what.not_after_utc_ns),
                               utc_text(utc_ns))};
  return {};
}

/// Reads a moderator's certificate without a check of its time.
result<certificate_read> read_moderator(std::string_view ca_pem) {
  auto out = read(ca_pem);
  if (!out) return failure{"the moderator's certificate: " + out.error()};
  if (!out->facts.moderator)
    return failure{fmt::format("the certificate of '{}' is not a moderator's: it may not issue any",
                               out->facts.name)};
  const pem::quiet errors;
  if (out->facts.name != out->facts.issuer ||
      X509_verify(out->object.get(), X509_get0_pubkey(out->object.get())) != 1)
    return failure{fmt::format("the moderator's certificate of '{}' is not signed by itself",
                               out->facts.name)};
  return out;
}

/// Runs OpenSSL's own check of the chain. Earlier checks give better messages for the usual faults.
result<void> verify_chain(X509* leaf, X509* ca, std::int64_t utc_ns) {
  const store trusted(X509_STORE_new());
  const store_context context(X509_STORE_CTX_new());
  pem::must(trusted != nullptr && context != nullptr &&
                X509_STORE_add_cert(trusted.get(), ca) == 1 &&
                X509_STORE_CTX_init(context.get(), trusted.get(), leaf, nullptr) == 1,
            "OpenSSL has no memory");
  X509_VERIFY_PARAM* how = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(how, static_cast<std::time_t>(utc_ns / 1'000'000'000));
  X509_VERIFY_PARAM_set_flags(how, X509_V_FLAG_X509_STRICT);
  if (X509_verify_cert(context.get()) == 1) return {};
  return failure{
      fmt::format("the certificate is refused: {}",
                  X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())))};
}

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

} // namespace

result<void> check_name(std::string_view name) {
  const auto plain = [](char c) { return c != '-' && c != '.' && c != '_'; };
  if (!name.empty() && name.size() <= 63 &&
      std::all_of(name.begin(), name.end(), is_host_character) && plain(name.front()) &&
      plain(name.back()) && name.find("..") == std::string_view::npos)
    return {};
  std::string shown;
  for (char c : name.substr(0, 70)) shown += c >= 0x20 && c < 0x7f ? c : '?';
  return failure{fmt::format(
      "'{}' is not a valid name: use up to 63 letters, digits, '-', '.' and '_', with a "
      "letter or digit at both ends",
      shown)};
}

std::string utc_text(std::int64_t utc_ns) {
  using namespace std::chrono;
  const auto at = floor<seconds>(sys_time<nanoseconds>(nanoseconds(utc_ns)));
  const auto day = floor<days>(at);
  const year_month_day date(day);
  const hh_mm_ss time(at - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count());
}

result<std::int64_t> parse_utc(std::string_view text) {
  using namespace std::chrono;
  constexpr std::string_view shape = "0000-00-00T00:00:00Z";
  const failure wrong{"not a time such as 2026-11-21T21:00:00Z"};
  if (text.size() != shape.size()) return wrong;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != shape[i]) return wrong;
  const auto number = [&](std::size_t at, std::size_t digits) {
    int out = 0;
    std::from_chars(text.data() + at, text.data() + at + digits, out);
    return out;
  };
  const year_month_day date = year(number(0, 4)) / number(5, 2) / number(8, 2);
  const int hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  // Only these years fit into 64 bits of nanoseconds.
  if (!date.ok() || date.year() < year(1678) || date.year() > year(2261) || hour > 23 ||
      minute > 59 || second > 59)
    return wrong;
  const auto at =
      sys_time<nanoseconds>(sys_days(date)) + hours(hour) + minutes(minute) + seconds(second);
  return at.time_since_epoch().count();
}

result<certificate_facts> read_certificate(std::string_view text) {
  auto found = read(text);
  if (!found) return failure{found.error()};
  return std::move(found->facts);
}

result<request_facts> read_request(std::string_view text) {
  const pem::quiet errors;
  auto object = pem::read_request(text);
  if (!object) return not_a("request", object.error());
  auto name = pem::common_name(*X509_REQ_get_subject_name(object->get()));
  if (!name) return not_a("request of a node", name.error());
  EVP_PKEY* key = X509_REQ_get0_pubkey(object->get());
  const auto bytes = pem::public_key(key);
  if (!bytes)
    return failure{
        "the request's key is of another type: expected Ed25519, as 'shoal keys request' makes it"};
  if (X509_REQ_verify(object->get(), key) != 1)
    return failure{"the request is not signed with the key in it: it was changed or is damaged"};
  return request_facts{*std::move(name), *bytes};
}

std::string make_request(std::string_view name, const signing_key& key) {
  const pem::request out(X509_REQ_new());
  pem::must(out != nullptr && X509_REQ_set_version(out.get(), X509_REQ_VERSION_1) == 1,
            "OpenSSL has no memory");
  pem::set_common_name(*X509_REQ_get_subject_name(out.get()), name);
  pem::must(X509_REQ_set_pubkey(out.get(), key.handle()) == 1 &&
                X509_REQ_sign(out.get(), key.handle(), nullptr) > 0,
            "OpenSSL cannot sign a request");
  return pem::write(*out);
}

result<void> check_moderator(std::string_view ca_pem, std::int64_t utc_ns) {
  const auto ca = read_moderator(ca_pem);
  if (!ca) return failure{ca.error()};
  return check_time(ca->facts, fmt::format("the moderator's certificate of '{}'", ca->facts.name),
                    utc_ns);
}

result<void> check_issued(std::string_view text, std::string_view ca_pem, std::int64_t utc_ns) {
  const auto ca = read_moderator(ca_pem);
  if (!ca) return failure{ca.error()};
  const auto leaf = read(text);
  if (!leaf) return failure{leaf.error()};
  const pem::quiet errors;
  const auto& facts = leaf->facts;
  const std::string whose = fmt::format("the certificate of '{}'", facts.name);
  X509* const object = leaf->object.get();
  EVP_PKEY* const moderator = X509_get0_pubkey(ca->object.get());
  if (X509_verify(object, moderator) != 1) {
    if (X509_verify(object, X509_get0_pubkey(object)) == 1)
      return failure{fmt::format("{} is signed by itself, not by the moderator of '{}'", whose,
                                 ca->facts.name)};
    if (facts.issuer != ca->facts.name)
      return failure{fmt::format("{} was issued by the moderator of '{}', not by that of '{}'",
                                 whose, facts.issuer, ca->facts.name)};
    return failure{fmt::format(
        "{} is not signed by this moderator of '{}': by another of that name, or it was changed",
        whose, ca->facts.name)};
  }
  if (facts.moderator)
    return failure{fmt::format("{} is a moderator's, not that of a node", whose)};
  if (facts.issuer != ca->facts.name)
    return failure{
        fmt::format("{} names '{}' as its issuer, not '{}'", whose, facts.issuer, ca->facts.name)};
  constexpr std::uint32_t both = XKU_SSL_CLIENT | XKU_SSL_SERVER;
  const std::uint32_t usage = X509_get_extended_key_usage(object);
  if (usage == UINT32_MAX || (usage & both) != both)
    return failure{fmt::format("{} is not for TLS clients and servers", whose)};
  if (X509_check_host(object, facts.name.data(), facts.name.size(),
                      X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr) != 1)
    return failure{fmt::format("{} is for another DNS name", whose)};
  if (auto now = check_time(
          ca->facts, fmt::format("the moderator's certificate of '{}'", ca->facts.name), utc_ns);
      !now)
    return now;
  if (auto now = check_time(facts, whose, utc_ns); !now) return now;
  return verify_chain(object, ca->object.get(), utc_ns);
}

result<revocation_list> revocation_list::read(std::string_view text, std::string_view ca_pem) {
  const auto ca = read_moderator(ca_pem);
  if (!ca) return failure{ca.error()};
  const pem::quiet errors;
  const auto object = pem::read_revoked_list(text);
  if (!object) return not_a("revocation list", object.error());
  X509_CRL* const list = object->get();
  revocation_list out;
  auto issuer = pem::common_name(*X509_CRL_get_issuer(list));
  if (!issuer) return not_a("revocation list of a swarm", issuer.error());
  out.issuer_ = *std::move(issuer);
  if (out.issuer_ != ca->facts.name)
    return failure{fmt::format("the revocation list is that of '{}', not of '{}'", out.issuer_,
                               ca->facts.name)};
  if (X509_CRL_verify(list, X509_get0_pubkey(ca->object.get())) != 1)
    return failure{fmt::format("the revocation list is not signed by this moderator of '{}': by "
                               "another of that name, or it was changed",
                               out.issuer_)};
  // A list for some certificates only, or a list of changes, has such a critical extension.
  for (int i = 0; i < X509_CRL_get_ext_count(list); ++i)
    if (X509_EXTENSION_get_critical(X509_CRL_get_ext(list, i)) != 0)
      return failure{"the revocation list is of a kind that is not supported"};
  const pem::integer number(
      static_cast<ASN1_INTEGER*>(X509_CRL_get_ext_d2i(list, NID_crl_number, nullptr, nullptr)));
  if (number == nullptr || ASN1_INTEGER_get_uint64(&out.number_, number.get()) != 1)
    return failure{"the revocation list has no number, so its age is unknown"};
  const auto from = pem::utc_ns(*X509_CRL_get0_lastUpdate(list));
  if (!from) return failure{"the revocation list is damaged: " + from.error()};
  out.from_utc_ns_ = *from;
  STACK_OF(X509_REVOKED)* const revoked = X509_CRL_get_REVOKED(list);
  for (int i = 0; i < sk_X509_REVOKED_num(revoked); ++i) {
    const X509_REVOKED* one = sk_X509_REVOKED_value(revoked, i);
    const auto serial = pem::serial_text(*X509_REVOKED_get0_serialNumber(one));
    const auto when = pem::utc_ns(*X509_REVOKED_get0_revocationDate(one));
    if (!serial || !when)
      return failure{fmt::format("the revocation list is damaged at its entry {}", i + 1)};
    out.entries_.push_back({*serial, *when});
  }
  std::sort(out.entries_.begin(), out.entries_.end());
  out.pem_ = pem::write(*list);
  return out;
}

bool revocation_list::revoked(std::string_view serial) const {
  const auto at =
      std::lower_bound(entries_.begin(), entries_.end(), serial,
                       [](const entry& one, std::string_view what) { return one.serial < what; });
  return at != entries_.end() && at->serial == serial;
}

} // namespace shoal::netem::wire
