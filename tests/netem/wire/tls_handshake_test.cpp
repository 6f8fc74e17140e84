// TLS 1.3 between two nodes that both show their certificates, without sockets.
#include "tests/netem/wire/swarm.hpp"

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::netem::wire;

namespace {

using tls_context = std::unique_ptr<SSL_CTX, pem::freed_by<SSL_CTX_free>>;
using tls = std::unique_ptr<SSL, pem::freed_by<SSL_free>>;

/// One side of a connection: its certificate, and the certificates that it trusts.
struct side {
  std::string certificate_pem;
  signing_key key;
  std::string ca_pem, list_pem;
};

tls_context context_of(const side& who) {
  tls_context out(SSL_CTX_new(TLS_method()));
  const auto ca = pem::read_certificate(who.ca_pem);
  const auto list = pem::read_revoked_list(who.list_pem);
  REQUIRE((out != nullptr && ca.ok() && list.ok()));
  SSL_CTX_set_min_proto_version(out.get(), TLS1_3_VERSION);
  SSL_CTX_set_verify(out.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  X509_STORE* store = SSL_CTX_get_cert_store(out.get());
  REQUIRE(
      (X509_STORE_add_cert(store, ca->get()) == 1 && X509_STORE_add_crl(store, list->get()) == 1));
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(out.get()),
                              X509_V_FLAG_CRL_CHECK | X509_V_FLAG_X509_STRICT);
  X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(out.get()), now / 1'000'000'000);
  if (who.certificate_pem.empty()) return out;
  const auto own = pem::read_certificate(who.certificate_pem);
  REQUIRE((own.ok() && SSL_CTX_use_certificate(out.get(), own->get()) == 1 &&
           SSL_CTX_use_PrivateKey(out.get(), who.key.handle()) == 1));
  return out;
}

/// The side whose verification failed, with the reason; "" if both sides accept each other. The
/// client expects `server_name`.
std::string handshake(const side& client_side, const side& server_side, const char* server_name) {
  const pem::quiet errors;
  const tls_context client_context = context_of(client_side),
                    server_context = context_of(server_side);
  const tls client(SSL_new(client_context.get())), server(SSL_new(server_context.get()));
  BIO *client_end = nullptr, *server_end = nullptr;
  REQUIRE(BIO_new_bio_pair(&client_end, 0, &server_end, 0) == 1);
  SSL_set_bio(client.get(), client_end, client_end);
  SSL_set_bio(server.get(), server_end, server_end);
  SSL_set1_host(client.get(), server_name);
  SSL_set_connect_state(client.get());
  SSL_set_accept_state(server.get());
  char byte = 0;
  std::string refused;
  // In TLS 1.3 the client is done before the server has checked its certificate, so each side also
  // reads once.
  for (int step = 0; step < 20; ++step) {
    SSL_do_handshake(client.get());
    ERR_clear_error();
    const int done = SSL_do_handshake(server.get());
    if (refused.empty() && done != 1 && SSL_get_error(server.get(), done) == SSL_ERROR_SSL)
      refused = ERR_reason_error_string(ERR_peek_error());
    if (SSL_is_init_finished(client.get())) SSL_read(client.get(), &byte, 1);
  }
  for (const auto& [who, what] : {std::pair{"client", client.get()}, {"server", server.get()}})
    if (const long why = SSL_get_verify_result(what); why != X509_V_OK)
      return std::string(who) + ": " + X509_verify_cert_error_string(why);
  if (!refused.empty()) return "server: " + refused;
  REQUIRE((SSL_is_init_finished(client.get()) && SSL_is_init_finished(server.get())));
  CHECK(SSL_version(client.get()) == TLS1_3_VERSION);
  // The shown certificate is the one that a node passes to check_issued() and looks up in its
  // revocation list.
  const std::unique_ptr<X509, pem::freed_by<X509_free>> shown(
      SSL_get1_peer_certificate(server.get()));
  CHECK(pem::write(*shown) == client_side.certificate_pem);
  return "";
}

} // namespace

TEST_CASE("two admitted nodes accept each other over TLS 1.3 and accept nobody else") {
  const moderator reef = new_moderator(), lagoon = new_moderator("lagoon"),
                  impostor = new_moderator();
  const revocation_list empty = read_list(reef, reef.first_list(now));
  const auto side_of = [&](const moderator& by, const char* name, duration validity = 30 * day) {
    const signing_key key = signing_key::make();
    return side{admit(by, name, key, validity), key, reef.certificate_pem(), empty.pem()};
  };
  const side a = side_of(reef, "lab-3"), b = side_of(reef, "lab-4");
  CHECK(handshake(a, b, "lab-4") == "");
  CHECK(handshake(b, a, "lab-3") == "");
  CHECK(handshake(a, b, "lab-5") == "client: hostname mismatch");

  CHECK(handshake(side{"", a.key, a.ca_pem, a.list_pem}, b, "lab-4") ==
        "server: peer did not return a certificate");
  CHECK(handshake(side_of(lagoon, "lab-3"), b, "lab-4") ==
        "server: unable to get local issuer certificate");
  CHECK(handshake(a, side_of(lagoon, "lab-4"), "lab-4") ==
        "client: unable to get local issuer certificate");
  CHECK(handshake(side_of(impostor, "lab-3"), b, "lab-4") ==
        "server: unable to get local issuer certificate");

  side late = b;
  late.list_pem =
      *reef.revoke(empty, std::vector{read_certificate(a.certificate_pem)->serial}, now);
  CHECK(handshake(a, late, "lab-4") == "server: certificate revoked");
  CHECK(handshake(side_of(reef, "lab-7"), late, "lab-4") == "");

  const auto old = reef.admit("lab-8", a.key.public_key(), after(-2min), 1min);
  REQUIRE(old.ok());
  CHECK(handshake(side{*old, a.key, a.ca_pem, a.list_pem}, b, "lab-4") ==
        "server: certificate has expired");
}
