// Certificates, requests and revocation lists: the contents that the moderator signs, and the
// contents that everybody refuses.
#include "netem/wire/certificates.hpp"
#include "tests/netem/wire/swarm.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <vector>

using namespace shoal;
using namespace shoal::netem::wire;

namespace {

/// Makes a certificate that the moderator's key signed after `change` has altered it. So tests get
/// certificates that no moderator issues.
template <class Change>
std::string issue_changed(const moderator& by, const char* name, const signing_key& key,
                          Change change) {
  const auto made = pem::read_certificate(admit(by, name, key));
  const auto ca = signing_key::read(by.key_pem().view());
  REQUIRE((made.ok() && ca.ok()));
  change(made->get());
  REQUIRE(X509_sign(made->get(), ca->handle(), nullptr) > 0);
  return pem::write(**made);
}

void remove_extension(X509* from, int nid) {
  const int at = X509_get_ext_by_NID(from, nid, -1);
  REQUIRE(at >= 0);
  X509_EXTENSION_free(X509_delete_ext(from, at));
}

void add_extension(X509* to, int nid, const char* value) {
  const pem::extension one(X509V3_EXT_nconf_nid(nullptr, nullptr, nid, value));
  REQUIRE((one != nullptr && X509_add_ext(to, one.get(), -1) == 1));
}

/// Makes a list that the moderator's key signed after `change` has altered it.
template <class Change>
std::string list_changed(const moderator& by, const std::string& pem, Change change) {
  const auto list = pem::read_revoked_list(pem);
  const auto ca = signing_key::read(by.key_pem().view());
  REQUIRE((list.ok() && ca.ok()));
  change(list->get());
  REQUIRE(X509_CRL_sign(list->get(), ca->handle(), nullptr) > 0);
  return pem::write(**list);
}

std::string list_refusal(const std::string& pem, const moderator& by) {
  const auto read = revocation_list::read(pem, by.certificate_pem());
  return read ? "" : read.error();
}

} // namespace

TEST_CASE("an admitted node's certificate states its name and issuer and validity") {
  const moderator reef = new_moderator();
  const signing_key key = signing_key::make();
  const std::string pem = admit(reef, "lab-3", key);
  const auto facts = read_certificate(pem);
  REQUIRE(facts.ok());
  CHECK(facts->name == "lab-3");
  CHECK(facts->issuer == "reef");
  CHECK(facts->public_key == key.public_key());
  CHECK(facts->not_before_utc_ns == after(-5min));
  CHECK(facts->not_after_utc_ns == after(30 * day));
  CHECK(facts->serial.size() == 32);
  CHECK_FALSE(facts->moderator);
  CHECK(refusal(pem, reef) == "");
  CHECK(check_moderator(reef.certificate_pem(), now).ok());
  const auto own = read_certificate(reef.certificate_pem());
  REQUIRE(own.ok());
  CHECK((own->moderator && own->name == "reef" && own->issuer == "reef" &&
         own->not_after_utc_ns == after(365 * day)));
}

TEST_CASE(
    "an operator's certificate is a node's with a mark, and no request can ask for the mark") {
  const moderator reef = new_moderator();
  const signing_key key = signing_key::make();
  const auto made = reef.admit("lab-desk", key.public_key(), now, day, true);
  REQUIRE(made.ok());
  CHECK(refusal(*made, reef) == "");
  const auto facts = read_certificate(*made);
  REQUIRE(facts.ok());
  CHECK((facts->operates && facts->name == "lab-desk" && !facts->moderator));
  CHECK_FALSE(read_certificate(admit(reef, "lab-3", key))->operates);
  CHECK_FALSE(read_certificate(reef.certificate_pem())->operates);
}

TEST_CASE("a request has a name and a key and no other content counts") {
  const moderator reef = new_moderator();
  const signing_key key = signing_key::make();
  const std::string request = make_request("lab-3", key);
  const auto facts = read_request(request);
  REQUIRE(facts.ok());
  CHECK(facts->name == "lab-3");
  CHECK(facts->public_key == key.public_key());
  // A request to be a moderator yields the certificate of a node.
  auto greedy = pem::read_request(request);
  REQUIRE(greedy.ok());
  STACK_OF(X509_EXTENSION)* wishes = sk_X509_EXTENSION_new_null();
  sk_X509_EXTENSION_push(
      wishes, X509V3_EXT_nconf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE"));
  REQUIRE((X509_REQ_add_extensions(greedy->get(), wishes) == 1 &&
           X509_REQ_sign(greedy->get(), key.handle(), nullptr) > 0));
  sk_X509_EXTENSION_pop_free(wishes, X509_EXTENSION_free);
  const auto read = read_request(pem::write(**greedy));
  REQUIRE(read.ok());
  const auto made = reef.admit(read->name, read->public_key, now, day);
  REQUIRE(made.ok());
  CHECK_FALSE(read_certificate(*made)->moderator);
}

TEST_CASE("a request with another key, another type of key or a wrong name is refused") {
  const signing_key key = signing_key::make(), other = signing_key::make();
  const auto changed = [&](auto change) {
    auto request = pem::read_request(make_request("lab-3", key));
    REQUIRE(request.ok());
    change(request->get());
    const auto read = read_request(pem::write(**request));
    return read ? std::string() : read.error();
  };
  CHECK(changed([&](X509_REQ* what) { X509_REQ_set_pubkey(what, other.handle()); }) ==
        "the request is not signed with the key in it: it was changed or is damaged");
  const pem::key curve(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  CHECK(changed([&](X509_REQ* what) {
          X509_REQ_set_pubkey(what, curve.get());
          X509_REQ_sign(what, curve.get(), EVP_sha256());
        }) ==
        "the request's key is of another type: expected Ed25519, as 'shoal keys request' makes it");
  CHECK(changed([&](X509_REQ* what) {
          pem::set_common_name(*X509_REQ_get_subject_name(what), "twice");
          X509_REQ_sign(what, key.handle(), nullptr);
        }) == "not a request of a node: the name is not a common name (CN) alone");
  CHECK(has(read_request(make_request("lab 3", key)).error(),
            "not a request of a node: 'lab 3' is not a valid name: use up to 63 letters"));
  CHECK(read_request(admit(new_moderator(), "lab-3", key)).error() ==
        "not a request: expected a CERTIFICATE REQUEST, not a CERTIFICATE");
}

TEST_CASE("expired and not yet valid certificates are refused, to the second") {
  const moderator reef = new_moderator();
  const std::string pem = admit(reef, "lab-3", signing_key::make(), 1h);
  CHECK(refusal(pem, reef, after(1h - 1s)) == "");
  CHECK(refusal(pem, reef, after(1h)) ==
        "the certificate of 'lab-3' expired at 2026-11-21T22:00:00Z; it is 2026-11-21T22:00:00Z");
  CHECK(refusal(pem, reef, after(-5min)) == "");
  CHECK(refusal(pem, reef, after(-5min - 1s)) ==
        "the moderator's certificate of 'reef' is not valid before 2026-11-21T20:55:00Z, "
        "and this machine's clock says 2026-11-21T20:54:59Z");
  const auto later = reef.admit("lab-4", signing_key::make().public_key(), after(day), day);
  REQUIRE(later.ok());
  CHECK(refusal(*later, reef, now) ==
        "the certificate of 'lab-4' is not valid before 2026-11-22T20:55:00Z, and this machine's "
        "clock says 2026-11-21T21:00:00Z");
}

TEST_CASE("a node is not admitted for longer than its moderator or with the moderator's name") {
  const moderator reef = new_moderator();
  const signing_key key = signing_key::make();
  const std::string pem = admit(reef, "lab-3", key, 5000 * day);
  CHECK(read_certificate(pem)->not_after_utc_ns == after(365 * day));
  CHECK(refusal(pem, reef, after(365 * day + 1s)) ==
        "the moderator's certificate of 'reef' expired at 2027-11-21T21:00:00Z; it is "
        "2027-11-21T21:00:01Z");
  CHECK(reef.admit("reef", key.public_key(), now, day).error() ==
        "'reef' is the name of the swarm: a node needs another one");
  CHECK(reef.admit("lab-3", key.public_key(), now, 500ms).error() ==
        "a validity of 500ms is too short: at least 1s");
  CHECK(has(reef.admit("lab-3", key.public_key(), now, 100000 * day).error(),
            "is too long: it ends after the year 2260"));
  CHECK(has(moderator::make("a/b", now, day).error(), "'a/b' is not a valid name"));
}

TEST_CASE("certificates of other moderators are refused") {
  const moderator reef = new_moderator(), lagoon = new_moderator("lagoon"),
                  impostor = new_moderator();
  const signing_key key = signing_key::make();
  CHECK(
      refusal(admit(lagoon, "lab-3", key), reef) ==
      "the certificate of 'lab-3' was issued by the moderator of 'lagoon', not by that of 'reef'");
  CHECK(refusal(admit(impostor, "lab-3", key), reef) ==
        "the certificate of 'lab-3' is not signed by this moderator of 'reef': by another of that "
        "name, or it was changed");
  CHECK(refusal(impostor.certificate_pem(), reef) ==
        "the certificate of 'reef' is signed by itself, not by the moderator of 'reef'");
  auto own = pem::read_certificate(admit(reef, "lab-3", key));
  REQUIRE((own.ok() && X509_sign(own->get(), key.handle(), nullptr) > 0));
  CHECK(refusal(pem::write(**own), reef) ==
        "the certificate of 'lab-3' is signed by itself, not by the moderator of 'reef'");
  CHECK(refusal(reef.certificate_pem(), reef) ==
        "the certificate of 'reef' is a moderator's, not that of a node");
  // The certificate of a node cannot issue other certificates.
  CHECK(check_issued(admit(reef, "lab-4", key), admit(reef, "lab-3", key), now).error() ==
        "the certificate of 'lab-3' is not a moderator's: it may not issue any");
}

TEST_CASE("a certificate that no moderator issues is refused though its signature is right") {
  const moderator reef = new_moderator();
  const signing_key key = signing_key::make();
  const auto changed = [&](auto change) {
    return refusal(issue_changed(reef, "lab-3", key, change), reef);
  };
  CHECK(changed([](X509*) {}) == "");
  CHECK(changed([](X509* what) { remove_extension(what, NID_ext_key_usage); }) ==
        "the certificate of 'lab-3' is not for TLS clients and servers");
  CHECK(changed([](X509* what) {
          remove_extension(what, NID_ext_key_usage);
          add_extension(what, NID_ext_key_usage, "clientAuth");
        }) == "the certificate of 'lab-3' is not for TLS clients and servers");
  CHECK(changed([](X509* what) {
          remove_extension(what, NID_subject_alt_name);
          add_extension(what, NID_subject_alt_name, "DNS:lab-4");
        }) == "the certificate of 'lab-3' is for another DNS name");
  CHECK(changed([](X509* what) {
          remove_extension(what, NID_basic_constraints);
          remove_extension(what, NID_key_usage);
          add_extension(what, NID_basic_constraints, "critical,CA:TRUE");
          add_extension(what, NID_key_usage, "critical,keyCertSign");
        }) == "the certificate of 'lab-3' is a moderator's, not that of a node");
  CHECK(changed([](X509* what) {
          X509_NAME* name = X509_NAME_new();
          pem::set_common_name(*name, "lagoon");
          X509_set_issuer_name(what, name);
          X509_NAME_free(name);
        }) == "the certificate of 'lab-3' names 'lagoon' as its issuer, not 'reef'");
  // An unknown critical extension must be refused (RFC 5280, section 4.2).
  CHECK(changed([](X509* what) {
          add_extension(what, NID_name_constraints, "critical,permitted;DNS:lab-3");
        }) == "");
  CHECK(changed([](X509* what) {
          const int nid =
              OBJ_create("1.3.6.1.4.1.55555.1", "shoalTest", "an extension that nobody knows");
          const char der[] = {5, 0};
          ASN1_OCTET_STRING* value = ASN1_OCTET_STRING_new();
          ASN1_OCTET_STRING_set(value, reinterpret_cast<const unsigned char*>(der), 2);
          const pem::extension one(X509_EXTENSION_create_by_NID(nullptr, nid, 1, value));
          ASN1_OCTET_STRING_free(value);
          REQUIRE(X509_add_ext(what, one.get(), -1) == 1);
        }) == "the certificate is refused: unhandled critical extension");
  const pem::key curve(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  CHECK(changed([&](X509* what) { X509_set_pubkey(what, curve.get()); }) ==
        "the certificate's key is of another type: expected Ed25519");
}

TEST_CASE("a second certificate in the text is an error") {
  const moderator reef = new_moderator(), lagoon = new_moderator("lagoon");
  const std::string pem = admit(reef, "lab-3", signing_key::make());
  CHECK(has(refusal(pem + pem, reef), "not a certificate: more than one PEM block"));
  CHECK(has(check_issued(pem, reef.certificate_pem() + lagoon.certificate_pem(), now).error(),
            "more than one PEM block"));
  CHECK(refusal("Certificate:\n  Data: as 'openssl x509 -text' says it\n" + pem, reef) == "");
}

TEST_CASE("names are valid for hosts and files") {
  for (const char* fine : {"a", "7", "lab-3", "Lab_3.example.org", "x-----y"})
    CHECK(check_name(fine).ok());
  CHECK(check_name(std::string(63, 'x')).ok());
  CHECK_FALSE(check_name(std::string(64, 'x')).ok());
  for (const char* wrong : {"", "-a", "a-", ".a", "a.", "a..b", "a b", "a/b", "..", "*", "*.a",
                            "a,b", "a\n", "\xc3\xa9t\xc3\xa9", "_a"}) {
    CAPTURE(wrong);
    CHECK_FALSE(check_name(wrong).ok());
  }
  CHECK_FALSE(check_name(std::string_view("a\0b", 3)).ok());
  CHECK(check_name("rm -rf \x1b[31m").error() ==
        "'rm -rf ?[31m' is not a valid name: use up to 63 letters, digits, '-', '.' and '_', with "
        "a letter or "
        "digit at both ends");
}

TEST_CASE("times are written and read to the second") {
  CHECK(utc_text(now) == "2026-11-21T21:00:00Z");
  CHECK(utc_text(0) == "1970-01-01T00:00:00Z");
  CHECK(utc_text(-1) == "1969-12-31T23:59:59Z");
  for (const std::int64_t when :
       {std::int64_t{0}, now, after(100 * 365 * day), std::int64_t{951'782'400'000'000'000}}) {
    const auto read = parse_utc(utc_text(when));
    REQUIRE(read.ok());
    CHECK(*read == when);
  }
  for (const char* wrong : {"", "2026-11-21", "2026-11-21T21:00:00", "2026-02-30T00:00:00Z",
                            "2026-11-21T24:00:00Z", "2026-11-21 21:00:00Z", "2026-11-21T21:00:0xZ",
                            "9999-01-01T00:00:00Z", "0000-01-01T00:00:00Z"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_utc(wrong).ok());
  }
}

TEST_CASE("serials are random") {
  const moderator reef = new_moderator();
  const signing_key key = signing_key::make();
  std::set<std::string> serials;
  for (int i = 0; i < 100; ++i) serials.insert(read_certificate(admit(reef, "lab-3", key))->serial);
  CHECK(serials.size() == 100);
}

TEST_CASE("a revocation list has a number and grows and keeps its dates") {
  const moderator reef = new_moderator();
  const std::string a(32, 'a'), b(32, 'b');
  const revocation_list first = read_list(reef, reef.first_list(now));
  CHECK(first.number() == 1);
  CHECK(first.entries().empty());
  CHECK(first.issuer() == "reef");
  CHECK_FALSE(first.revoked(a));
  CHECK_FALSE(first.revoked(""));
  const revocation_list second = read_list(reef, *reef.revoke(first, std::vector{b}, now));
  const revocation_list third =
      read_list(reef, *reef.revoke(second, std::vector{a, b, a}, after(day)));
  CHECK(third.number() == 3);
  CHECK(third.entries() == std::vector<revocation_list::entry>{{a, after(day)}, {b, now}});
  CHECK((third.revoked(a) && third.revoked(b) && !third.revoked(std::string(32, 'c')) &&
         !second.revoked(a)));
  CHECK(third.from_utc_ns() == after(day - 5min));
  CHECK(read_list(reef, third.pem()).entries() == third.entries());
  for (const char* wrong : {"", "xyz", "-1", "AA", "0"})
    CHECK_FALSE(reef.revoke(first, std::vector<std::string>{wrong}, now).ok());
}

TEST_CASE("ten thousand revocations are read back") {
  const moderator reef = new_moderator();
  std::vector<std::string> serials;
  for (int i = 1; i <= 10'000; ++i) serials.push_back(fmt::format("8{:031x}", i));
  const auto list =
      read_list(reef, *reef.revoke(read_list(reef, reef.first_list(now)), serials, now));
  CHECK(list.entries().size() == 10'000);
  CHECK((list.revoked(serials.front()) && list.revoked(serials.back())));
  CHECK_FALSE(list.revoked(std::string(32, 'f')));
}

TEST_CASE("other moderators' lists and changed lists and lists of other kinds are refused") {
  const moderator reef = new_moderator(), lagoon = new_moderator("lagoon"),
                  impostor = new_moderator();
  const std::string pem =
      *reef.revoke(read_list(reef, reef.first_list(now)), std::vector<std::string>{"abcd"}, now);
  CHECK(list_refusal(lagoon.first_list(now), reef) ==
        "the revocation list is that of 'lagoon', not of 'reef'");
  CHECK(list_refusal(impostor.first_list(now), reef) ==
        "the revocation list is not signed by this moderator of 'reef': by another of that name, "
        "or it was changed");
  CHECK(list_refusal(reef.certificate_pem(), reef) ==
        "not a revocation list: expected a X509 CRL, not a CERTIFICATE");
  CHECK(list_refusal(list_changed(reef, pem, [](X509_CRL*) {}), reef) == "");
  CHECK(list_refusal(list_changed(reef, pem,
                                  [](X509_CRL* what) {
                                    X509_EXTENSION_free(X509_CRL_delete_ext(
                                        what, X509_CRL_get_ext_by_NID(what, NID_crl_number, -1)));
                                  }),
                     reef) == "the revocation list has no number, so its age is unknown");
  CHECK(list_refusal(list_changed(reef, pem,
                                  [](X509_CRL* what) {
                                    const pem::extension one(X509V3_EXT_nconf_nid(
                                        nullptr, nullptr, NID_delta_crl, "critical,1"));
                                    pem::integer base(ASN1_INTEGER_new());
                                    ASN1_INTEGER_set(base.get(), 1);
                                    REQUIRE(X509_CRL_add1_ext_i2d(what, NID_delta_crl, base.get(),
                                                                  1, 0) == 1);
                                  }),
                     reef) == "the revocation list is of a kind that is not supported");
}

TEST_CASE("openssl agrees with the admission and the revocation of certificates") {
  if (std::system("openssl version >/dev/null 2>&1") != 0)
    SHOAL_SKIP("no openssl command to compare with");
  const scratch_folder folder;
  const moderator reef = new_moderator();
  const std::string kept = admit(reef, "lab-3", signing_key::make()),
                    revoked = admit(reef, "lab-4", signing_key::make());
  folder.write("swarm.crt", reef.certificate_pem());
  folder.write("kept.crt", kept);
  folder.write("revoked.crt", revoked);
  folder.write("revoked.crl", *reef.revoke(read_list(reef, reef.first_list(now)),
                                           std::vector{read_certificate(revoked)->serial}, now));
  folder.write("other.crt", admit(new_moderator(), "lab-5", signing_key::make()));
  folder.write("request.csr", make_request("lab-3", signing_key::make()));
  const auto openssl = [&](const std::string& arguments) {
    const int status = std::system(
        ("cd '" + folder.path.string() + "' && openssl " + arguments + " >out 2>&1").c_str());
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  };
  const std::string at = fmt::format(" -x509_strict -attime {} ", now / 1'000'000'000);
  const std::string verify = "verify -crl_check -CAfile swarm.crt -CRLfile revoked.crl" + at;
  for (const char* purpose : {"sslclient", "sslserver"}) {
    CHECK(openssl(verify + "-verify_hostname lab-3 -purpose " + purpose + " kept.crt"));
    CHECK_FALSE(openssl(verify + "-purpose " + purpose + " revoked.crt"));
    CHECK(openssl("verify -CAfile swarm.crt" + at + "-purpose " + purpose + " revoked.crt"));
  }
  CHECK_FALSE(openssl(verify + "-verify_hostname lab-4 kept.crt"));
  CHECK_FALSE(openssl(verify + "other.crt"));
  const std::string later = fmt::format(" -attime {} ", after(31 * day) / 1'000'000'000);
  CHECK_FALSE(
      openssl("verify -crl_check -CAfile swarm.crt -CRLfile revoked.crl" + later + "kept.crt"));
  CHECK(openssl("req -in request.csr -verify -noout"));
  CHECK(openssl("crl -in revoked.crl -CAfile swarm.crt -noout"));
}
