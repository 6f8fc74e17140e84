#include "netem/wire/tls.hpp"

#include "netem/wire/end_reasons.hpp"
#include "netem/wire/pem.hpp"
#include "netem/wire/signing_key.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace shoal::netem::wire {

namespace {

using ssl_context = std::unique_ptr<SSL_CTX, pem::freed_by<SSL_CTX_free>>;
using session = std::unique_ptr<SSL, pem::freed_by<SSL_free>>;

/// The plain bytes of one record (RFC 8446, section 5.1).
constexpr std::size_t record_bytes = std::size_t{16} << 10;
constexpr long most_certificate_bytes = 16 << 10;
/// Encrypted bytes that wait for the socket. One call of the kernel takes so many.
constexpr std::size_t most_encrypted = std::size_t{256} << 10;
/// One read from the socket takes some records.
constexpr std::size_t read_ahead_bytes = std::size_t{68} << 10;

/// Encrypted bytes on their way to the socket.
struct encrypted_bytes {
  std::vector<char> bytes;
  std::size_t sent = 0;
};

/// OpenSSL writes each record by itself. This end of a pair collects records for one call.
BIO_METHOD* collecting() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "collecting");
    pem::must(made != nullptr, "OpenSSL has memory");
    BIO_meth_set_write(made, [](BIO* at, const char* data, int size) {
      auto& into = *static_cast<encrypted_bytes*>(BIO_get_data(at));
      into.bytes.insert(into.bytes.end(), data, data + size);
      return size;
    });
    BIO_meth_set_ctrl(
        made, [](BIO*, int what, long, void*) -> long { return what == BIO_CTRL_FLUSH ? 1 : 0; });
    return made;
  }();
  return method;
}

class tls_stream final : public socket_stream {
public:
  tls_stream(descriptor socket, SSL_CTX* made_from, tls_side side)
      : socket_stream(std::move(socket)), tls_(SSL_new(made_from)) {
    pem::must(tls_ != nullptr, "OpenSSL has memory");
    BIO* in = BIO_new_socket(this->socket(), BIO_NOCLOSE);
    BIO* out = BIO_new(collecting());
    pem::must(in != nullptr && out != nullptr, "OpenSSL has memory");
    BIO_set_data(out, &out_);
    BIO_set_init(out, 1);
    SSL_set_bio(tls_.get(), in, out);
    SSL_set_msg_callback(tls_.get(), message_came);
    SSL_set_msg_callback_arg(tls_.get(), this);
    side == tls_side::dials ? SSL_set_connect_state(tls_.get()) : SSL_set_accept_state(tls_.get());
  }

  io_state handshake() override {
    begin();
    const auto state = state_of(SSL_do_handshake(tls_.get()));
    if (state == io_state::failed) {
      // The reason is worth telling the other side, too.
      flush_now();
      return state;
    }
    if (const auto sent = flush_now(); sent != io_state::done) return sent;
    if (state == io_state::ended) {
      why_ = closed_by_other;
      return io_state::failed;
    }
    shaken_ = state == io_state::done;
    return state;
  }

  io_result read(std::span<const iovec> into) override {
    begin();
    std::size_t all = 0;
    for (const auto& place : into) {
      for (std::size_t at = 0; at < place.iov_len;) {
        std::size_t got = 0;
        const int said = SSL_read_ex(tls_.get(), static_cast<char*>(place.iov_base) + at,
                                     place.iov_len - at, &got);
        at += got;
        all += got;
        if (said == 1) continue;
        if (all > 0) return {io_state::done, all}; // the next call says the same again
        return {state_of(said), 0};
      }
    }
    return {io_state::done, all};
  }
  bool has_read_ahead() const override { return SSL_has_pending(tls_.get()) == 1; }

  io_result write(std::span<const iovec> what) override {
    begin();
    std::size_t all = 0;
    for (std::size_t at = 0, offset = 0; at < what.size();) {
      if (waiting() >= most_encrypted)
        if (const auto sent = flush_now(); waiting() >= most_encrypted) return {sent, all};
      // Short pieces share a record with what follows. Long ones are encrypted where they are.
      const auto* from = static_cast<const char*>(what[at].iov_base) + offset;
      std::size_t size = std::min(what[at].iov_len - offset, record_bytes);
      if (size < record_bytes && at + 1 < what.size()) {
        size = 0;
        while (at < what.size() && size < record_bytes) {
          const auto part = std::min(what[at].iov_len - offset, record_bytes - size);
          std::memcpy(together_.data() + size, static_cast<const char*>(what[at].iov_base) + offset,
                      part);
          size += part;
          offset += part;
          if (offset == what[at].iov_len) ++at, offset = 0;
        }
        from = together_.data();
      } else {
        offset += size;
        if (offset == what[at].iov_len) ++at, offset = 0;
      }
      std::size_t took = 0;
      // No state of the socket makes this fail, since the records are collected. The session has.
      if (size > 0 && SSL_write_ex(tls_.get(), from, size, &took) != 1) {
        if (state_of(0) != io_state::failed) why_ = closed_by_other;
        return {io_state::failed, all};
      }
      all += size;
    }
    return {io_state::done, all};
  }

  io_state flush() override { return flush_now(); }
  void end() override {
    begin();
    SSL_shutdown(tls_.get());
    flush_now();
    socket_stream::end();
  }

  std::string certificate() const override {
    const std::unique_ptr<X509, pem::freed_by<X509_free>> of_other(
        SSL_get1_peer_certificate(tls_.get()));
    return of_other ? pem::write(*of_other) : std::string{};
  }

private:
  /// Correct hosts send no messages of the TLS handshake after it. OpenSSL would handle any number
  /// of them inside one call.
  static void message_came(int sent, int, int kind, const void*, std::size_t, SSL* of, void* self) {
    if (sent == 0 && kind == SSL3_RT_HANDSHAKE && static_cast<const tls_stream*>(self)->shaken_)
      ::shutdown(SSL_get_rfd(of), SHUT_RDWR);
  }
  /// SSL_get_error() takes old errors for new ones.
  static void begin() {
    ERR_clear_error();
    errno = 0;
  }
  std::size_t waiting() const noexcept { return out_.bytes.size() - out_.sent; }

  io_state flush_now() {
    while (waiting() > 0) {
      const iovec rest{out_.bytes.data() + out_.sent, waiting()};
      const auto went = socket_stream::write({&rest, 1});
      out_.sent += went.bytes;
      if (went.state == io_state::done) continue;
      out_.bytes.erase(out_.bytes.begin(),
                       out_.bytes.begin() + static_cast<std::ptrdiff_t>(out_.sent));
      out_.sent = 0;
      return went.state;
    }
    out_.bytes.clear();
    out_.sent = 0;
    return io_state::done;
  }

  io_state state_of(int said) {
    if (said == 1) return io_state::done;
    const int code = errno;
    switch (SSL_get_error(tls_.get(), said)) {
    case SSL_ERROR_WANT_READ:
      return io_state::wants_read;
    case SSL_ERROR_WANT_WRITE:
      return io_state::wants_write;
    case SSL_ERROR_ZERO_RETURN:
      return io_state::ended;
    case SSL_ERROR_SYSCALL:
      if (code == 0) return io_state::ended;
      return failed(code);
    default:
      break;
    }
    const auto error = ERR_peek_error();
    if (ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING) return io_state::ended;
    const char* reason = ERR_reason_error_string(error);
    why_ = fmt::format("TLS failed: {}", reason == nullptr ? "no reason is known" : reason);
    return io_state::failed;
  }

  session tls_;
  encrypted_bytes out_;
  bool shaken_ = false;
  std::array<char, record_bytes> together_;
};

class both_sides final : public tls_credentials {
public:
  both_sides(ssl_context dials, ssl_context listens)
      : dials_(std::move(dials)), listens_(std::move(listens)) {}
  std::unique_ptr<socket_stream> open(descriptor socket, tls_side side) const override {
    return std::make_unique<tls_stream>(
        std::move(socket), side == tls_side::dials ? dials_.get() : listens_.get(), side);
  }

private:
  const ssl_context dials_, listens_;
};

} // namespace

result<std::shared_ptr<const tls_credentials>>
tls_credentials::make(std::string_view key_pem, std::string_view certificate_pem,
                      std::string_view ca_pem) {
  const pem::quiet errors;
  const auto key = signing_key::read(key_pem);
  if (!key) return failure{key.error()};
  const auto certificate = pem::read_certificate(certificate_pem);
  if (!certificate) return failure{certificate.error()};
  const auto ca = pem::read_certificate(ca_pem);
  if (!ca) return failure{ca.error()};
  ssl_context made[2];
  for (auto& each : made) {
    each.reset(SSL_CTX_new(TLS_method()));
    auto* const of = each.get();
    pem::must(of != nullptr, "OpenSSL has memory");
    SSL_CTX_set_min_proto_version(of, TLS1_3_VERSION);
    // Every connection shows its certificate, so none is resumed.
    SSL_CTX_set_session_cache_mode(of, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(of, 0);
    SSL_CTX_set_mode(of, SSL_MODE_RELEASE_BUFFERS);
    // Keys of members are of this kind. Others may be slow to check.
    pem::must(SSL_CTX_set1_sigalgs_list(of, "ed25519") == 1, "OpenSSL knows Ed25519");
    SSL_CTX_set_max_cert_list(of, most_certificate_bytes);
    SSL_CTX_set_read_ahead(of, 1);
    SSL_CTX_set_default_read_buffer_len(of, read_ahead_bytes);
    if (SSL_CTX_use_certificate(of, certificate->get()) != 1 ||
        SSL_CTX_use_PrivateKey(of, key->handle()) != 1 || SSL_CTX_check_private_key(of) != 1)
      return failure{"the key does not belong to the certificate"};
  }
  pem::must(X509_STORE_add_cert(SSL_CTX_get_cert_store(made[0].get()), ca->get()) == 1,
            "OpenSSL has memory");
  SSL_CTX_set_verify(made[0].get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_verify(made[1].get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(
      made[1].get(), [](X509_STORE_CTX*, void*) { return 1; }, nullptr);
  return std::shared_ptr<const tls_credentials>(
      std::make_shared<both_sides>(std::move(made[0]), std::move(made[1])));
}

} // namespace shoal::netem::wire
