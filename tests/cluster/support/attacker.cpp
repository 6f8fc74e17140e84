#include "tests/cluster/support/attacker.hpp"

#include "netem/wire/credentials.hpp"
#include "netem/wire/pem.hpp"
#include "netem/wire/socket_pipe.hpp"
#include "tests/netem/wire/on_the_wire.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

namespace shoal::cluster {

using namespace netem::wire;

raw_connection::raw_connection(std::uint16_t port, const char* from_address)
    : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in from{}, to{};
  from.sin_family = to.sin_family = AF_INET;
  inet_pton(AF_INET, from_address, &from.sin_addr);
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  to.sin_port = htons(port);
  if (bind(socket_, reinterpret_cast<const sockaddr*>(&from), sizeof(from)) == 0 &&
      connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0)
    return;
  ::close(socket_);
  socket_ = -1;
}

raw_connection::~raw_connection() {
  if (socket_ >= 0) ::close(socket_);
}

void raw_connection::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const auto count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return; // the other side has closed the connection; closed() reports it
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

bool raw_connection::closed(std::chrono::milliseconds limit) const {
  return wait_until(
      [&] {
        pollfd poll_for{socket_, POLLIN, 0};
        if (poll(&poll_for, 1, 0) <= 0) return false;
        char buffer[256];
        return recv(socket_, buffer, sizeof(buffer), MSG_DONTWAIT) <= 0;
      },
      limit);
}

namespace {

/// A TLS client of the attacker's own making.
struct tls_client {
  tls_client(std::uint16_t port, const identity& as, int version) : connection(port, "127.0.0.3") {
    SSL_CTX_set_min_proto_version(context.get(), version);
    SSL_CTX_set_max_proto_version(context.get(), version);
    if (!as.certificate_pem.empty()) {
      const auto own = pem::read_certificate(as.certificate_pem);
      const auto key = signing_key::read(as.key_pem);
      REQUIRE((own.ok() && key.ok()));
      REQUIRE((SSL_CTX_use_certificate(context.get(), own->get()) == 1 &&
               SSL_CTX_use_PrivateKey(context.get(), key->handle()) == 1));
    }
    REQUIRE(connection.connected());
    std::signal(SIGPIPE, SIG_IGN); // the other side closes while this one writes
    const timeval limit{patience.count(), 0};
    setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    tls.reset(SSL_new(context.get()));
    SSL_set_fd(tls.get(), connection.get());
    ERR_clear_error();
  }
  bool connects() { return SSL_connect(tls.get()) == 1; }
  void write(const std::string& bytes) {
    SSL_write(tls.get(), bytes.data(), static_cast<int>(bytes.size()));
  }
  /// Reads a byte. Returns false at the end of the stream, or after a failure.
  bool reads() {
    char byte = 0;
    return SSL_read(tls.get(), &byte, 1) == 1;
  }

  const std::unique_ptr<SSL_CTX, pem::freed_by<SSL_CTX_free>> context{
      SSL_CTX_new(TLS_client_method())};
  const raw_connection connection;
  std::unique_ptr<SSL, pem::freed_by<SSL_free>> tls;
};

} // namespace

std::string tls_handshake(std::uint16_t port, const identity& as, int version) {
  const pem::quiet errors;
  tls_client client(port, as, version);
  if (client.connects() && client.reads()) return "";
  const auto why = ERR_peek_error();
  const auto* text = why == 0 ? nullptr : ERR_reason_error_string(why);
  return text == nullptr ? "closed" : text;
}

std::shared_ptr<const tls_credentials> credentials_of(const identity& as,
                                                      const std::string& ca_pem) {
  const auto made = tls_credentials::make(as.key_pem, as.certificate_pem, ca_pem);
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string{} : made.error()));
  return *made;
}

false_host::false_host(const std::string& target,
                       std::shared_ptr<const tls_credentials> credentials) {
  for (int i = 0; i < 2; ++i) {
    pipes_[i] = open_pipe(target, i == 0 ? "control" : "bulk", credentials, {});
    pipes_[i]->start(
        [seen = seen_, i](payload bytes) {
          std::lock_guard guard(seen->mutex);
          frame_reader in(bytes.bytes());
          const auto kind = static_cast<frame_kind>(in.get<std::uint8_t>());
          bool other_version = false;
          if (kind == frame_kind::hello && i == 0)
            seen->hello = read_hello(bytes.bytes(), other_version);
          if (kind == frame_kind::refused)
            if (const auto why = in.get<std::uint8_t>(); why < refusal_names.size())
              seen->refused = refusal_names[why];
          seen->changed.notify_all();
        },
        [seen = seen_](const std::string& why) {
          std::lock_guard guard(seen->mutex);
          if (seen->closed == 0) seen->why = why;
          ++seen->closed;
          seen->changed.notify_all();
        });
  }
}

false_host::~false_host() {
  for (const auto& each : pipes_) each->close();
}

void false_host::send(int pipe, frame what) {
  pipes_[pipe]->send(std::move(what));
}

void false_host::send(int pipe, std::span<const std::byte> bytes) {
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  send(pipe, frame{{begin, begin + bytes.size()}, {}});
}

void false_host::greet(const hello& says) {
  for (int i = 0; i < 2; ++i) send(i, to_frame(says));
}

std::optional<hello> false_host::answer() {
  std::unique_lock lock(seen_->mutex);
  wait(lock, [&] { return seen_->hello || !seen_->refused.empty() || seen_->closed > 0; });
  return seen_->hello;
}

std::string false_host::refused() {
  std::unique_lock lock(seen_->mutex);
  wait(lock, [&] { return !seen_->refused.empty() || seen_->closed == 2; });
  return !seen_->refused.empty() ? seen_->refused : seen_->closed == 2 ? "closed" : "";
}

std::string false_host::why_closed() const {
  std::lock_guard guard(seen_->mutex);
  return seen_->why;
}

bool false_host::closed(std::chrono::milliseconds limit) {
  std::unique_lock lock(seen_->mutex);
  return wait(
      lock, [&] { return seen_->closed > 0; }, limit);
}

false_listener::false_listener(const std::string& keys, on_frame handle) {
  auto credentials = load_credentials(keys);
  REQUIRE_MESSAGE(credentials, (credentials.ok() ? std::string{} : credentials.error()));
  listener_options options;
  options.at = {"127.0.0.1", 0};
  options.credentials = credentials->tls;
  options.on_pipe = [all = taken_, handle](std::shared_ptr<pipe> made) {
    made->start(
        [handle, through = made.get()](payload bytes) {
          if (bytes.empty()) return;
          handle(*through, static_cast<frame_kind>(bytes.bytes()[0]), bytes);
        },
        [](const std::string&) {});
    std::lock_guard guard(all->mutex);
    all->pipes.push_back(std::move(made));
  };
  auto opened = listener::open(std::move(options));
  REQUIRE(opened.ok());
  listener_ = std::move(*opened);
}

false_listener::~false_listener() {
  listener_->close();
}

std::size_t false_listener::opened() const {
  std::lock_guard guard(taken_->mutex);
  return taken_->pipes.size();
}

frame refused_frame(refusal why, std::string_view text) {
  return frame_writer(frame_kind::refused).put(static_cast<std::uint8_t>(why)).put(text).done();
}

bool send_unframed(std::uint16_t port, const identity& as, const std::string& bytes) {
  const pem::quiet errors;
  tls_client client(port, as, TLS1_3_VERSION);
  REQUIRE(client.connects());
  client.write(std::string(protocol_magic) + on_the_wire("control") + bytes);
  const auto begun = std::chrono::steady_clock::now();
  while (client.reads()) {
  }
  return std::chrono::steady_clock::now() - begun < patience;
}

frame message_frame(const message_head& head, std::string_view body) {
  frame out;
  write(head, out.head);
  out.head.insert(out.head.end(), body.begin(), body.end());
  return out;
}

frame message_to(std::uint32_t to, std::string_view binary, std::uint32_t from) {
  message_head head;
  head.to = to;
  head.from = from;
  head.binary = static_cast<std::uint32_t>(binary.size());
  std::string body(binary);
  body.resize((body.size() + 7) / 8 * 8);
  return message_frame(head, body);
}

frame message_to(const hello& theirs, std::string_view binary) {
  return message_to(static_cast<std::uint32_t>(theirs.service - 1), binary);
}

std::string attacked_swarm(std::uint64_t seed, std::uint64_t epochs) {
  return fmt::format(R"(
seed: {}
stop_time: 1h
network: {{default_delay: 1ms, detection_time: 2s}}
devices: {{fast: {{samples_per_second: 150, step_time: 2ms}}}}
peers: {{p: {{count: 3, up: 20Mbit, down: 50Mbit, device: fast}}}}
data: {{prefetch_samples: 64}}
workload: {{kind: quadratic, parameters: 4000}}
training: {{target_batch: 96, micro_batch: 4, epochs: {}, min_refresh: 50ms, max_refresh: 400ms, optimizer: {{kind: sgd, learning_rate: 0.1}}}}
averaging: {{matchmaking_time: 600ms, round_timeout: 10s, sender_timeout: 3s, chunk_size: 2KiB}}
record: {{metrics_interval: 200ms}}
)",
                     seed, epochs);
}

std::string endless_swarm(unsigned peers, std::string_view averaging, std::string_view more) {
  return fmt::format(R"(
seed: 3
stop_time: 1h
network: {{default_delay: 1ms, detection_time: 2s}}
devices: {{fast: {{samples_per_second: 150, step_time: 2ms}}}}
peers: {{p: {{count: {}, up: 20Mbit, down: 50Mbit, device: fast}}}}
workload: {{kind: quadratic, parameters: 400}}
training: {{target_batch: 64, micro_batch: 4, min_refresh: 50ms, max_refresh: 400ms, optimizer: {{kind: sgd, learning_rate: 0.1}}}}
averaging: {{matchmaking_time: 600ms, round_timeout: 10s, sender_timeout: 3s{}}}
record: {{metrics_interval: 100ms}}
{}
)",
                     peers, averaging, more);
}

std::string binary_of(std::string_view name, std::string_view content) {
  std::string out(1, static_cast<char>(name.size()));
  out += name;
  out += content;
  return out;
}

} // namespace shoal::cluster
