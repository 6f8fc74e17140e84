// netem/wire/socket_pipe and listener: pipes over real sockets of this machine.
#include "kernels/base/descriptor.hpp"
#include "kernels/base/rng.hpp"
#include "netem/wire/admission.hpp"
#include "netem/wire/certificates.hpp"
#include "netem/wire/end_reasons.hpp"
#include "netem/wire/listener.hpp"
#include "netem/wire/moderator.hpp"
#include "netem/wire/pem.hpp"
#include "netem/wire/signing_key.hpp"
#include "netem/wire/socket_pipe.hpp"
#include "netem/wire/tls.hpp"
#include "tests/netem/wire/on_the_wire.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace shoal;
using namespace shoal::netem::wire;
using namespace std::chrono_literals;

namespace {

constexpr auto patience = 30s;

/// A moderator, and credentials that it issued.
class certified {
public:
  std::shared_ptr<const tls_credentials> of(const std::string& name) const {
    const auto key = signing_key::make();
    const auto pem = key.pem();
    const auto made =
        tls_credentials::make(pem.view(), certificate_of(name, key), own_->certificate_pem());
    REQUIRE(made.ok());
    return *made;
  }
  std::string certificate_of(const std::string& name, const signing_key& key) const {
    const auto out = own_->admit(name, key.public_key(), utc_now(), 24h);
    REQUIRE(out.ok());
    return *out;
  }

private:
  const result<moderator> own_ = moderator::make("reef", utc_now(), 48h);
};

/// One side of a pipe, and all that it has seen.
class side {
public:
  side() = default;
  side(const side&) = delete;
  ~side() {
    if (!through_) return;
    through_->close();
    closed();
  }
  void start(std::shared_ptr<netem::wire::pipe> through) {
    {
      std::lock_guard guard(mutex_);
      through_ = through;
      changed_.notify_all();
    }
    through->start(
        [this](const payload& frame) {
          if (on_frame) on_frame(frame);
          std::lock_guard guard(mutex_);
          const auto bytes = frame.bytes();
          frames_.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          changed_.notify_all();
        },
        [this](const std::string& why) {
          std::lock_guard guard(mutex_);
          why_.push_back(why);
          changed_.notify_all();
        });
  }
  bool has(std::size_t frames) {
    return wait([&] { return frames_.size() >= frames; });
  }
  bool is_there() {
    return wait([&] { return through_ != nullptr; });
  }
  /// Why the pipe was closed; "" if it is open after a while.
  std::string closed(std::chrono::milliseconds limit = patience) {
    return wait([&] { return !why_.empty(); }, limit) ? why_.front() : "";
  }
  std::vector<std::string> frames() {
    std::lock_guard guard(mutex_);
    return frames_;
  }
  std::size_t ends() {
    std::lock_guard guard(mutex_);
    return why_.size();
  }
  netem::wire::pipe& through() { return *through_; }

  std::function<void(const payload&)> on_frame;

private:
  bool wait(const std::function<bool()>& done, std::chrono::milliseconds limit = patience) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, done);
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<netem::wire::pipe> through_;
  std::vector<std::string> frames_, why_;
};

listener_options options_for(side& into, std::shared_ptr<const tls_credentials> credentials = {}) {
  listener_options out;
  out.at = {"127.0.0.1", 0};
  out.credentials = std::move(credentials);
  out.on_pipe = [&into](std::shared_ptr<netem::wire::pipe> made) { into.start(std::move(made)); };
  return out;
}

std::unique_ptr<listener> opened(listener_options options) {
  auto made = listener::open(std::move(options));
  REQUIRE(made.ok());
  return std::move(*made);
}

void dial(side& from, const listener& to, const std::shared_ptr<const tls_credentials>& as = {}) {
  from.start(open_pipe(to.at().text(), "bulk", as, {}));
}

std::string noise(rng& random, std::size_t size) {
  std::string out(size, '\0');
  for (auto& each : out) each = static_cast<char>(random.below(256));
  return out;
}

/// A frame of a head, and of payloads of any sizes.
frame cut(rng& random, const std::string& text) {
  frame out;
  std::size_t at = std::min<std::size_t>(random.below(60), text.size());
  out.head.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at));
  while (at < text.size()) {
    const auto part = std::min<std::size_t>(random.below(40'000), text.size() - at);
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data()) + at;
    out.behind.emplace_back(std::vector<std::byte>(bytes, bytes + part));
    at += part;
  }
  return out;
}

/// A socket of this test's own, connected to the listener.
descriptor raw(const listener& to) {
  descriptor out(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(to.at().port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(out.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  return out;
}

void say(const descriptor& to, const std::string& bytes) {
  REQUIRE(::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
}

/// A TLS client of this test's own, which may break the protocol.
struct raw_tls {
  raw_tls(const listener& to, const certified& by) : socket(raw(to)) {
    const pem::quiet errors;
    const auto key = signing_key::make();
    const auto own = pem::read_certificate(by.certificate_of("raw", key));
    REQUIRE((SSL_CTX_use_certificate(context.get(), own->get()) == 1 &&
             SSL_CTX_use_PrivateKey(context.get(), key.handle()) == 1));
    tls.reset(SSL_new(context.get()));
    SSL_set_fd(tls.get(), socket.get());
    REQUIRE(SSL_connect(tls.get()) == 1);
  }
  bool write(const std::string& bytes) {
    return SSL_write(tls.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }
  /// Waits until the other side has closed the connection.
  bool closed() {
    const timeval limit{patience.count(), 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char bytes[256];
    for (;;) {
      const auto got = recv(socket.get(), bytes, sizeof bytes, 0);
      if (got <= 0) return got == 0 || errno == ECONNRESET;
    }
  }

  const std::unique_ptr<SSL_CTX, pem::freed_by<SSL_CTX_free>> context{
      SSL_CTX_new(TLS_client_method())};
  const descriptor socket;
  std::unique_ptr<SSL, pem::freed_by<SSL_free>> tls;
};

const std::string greeting = std::string(protocol_magic) + on_the_wire("bulk");

} // namespace

TEST_CASE("frames of all sizes arrive in order in both directions with TLS and without") {
  const certified by;
  for (const bool tls : {false, true}) {
    CAPTURE(tls);
    side server, client;
    const auto at = opened(options_for(server, tls ? by.of("server") : nullptr));
    dial(client, *at, tls ? by.of("client") : nullptr);
    REQUIRE(server.is_there());
    CHECK(server.through().kind() == "bulk");
    CHECK(server.through().peer().starts_with("127.0.0.1:"));
    CHECK(server.through().certificate().empty() != tls);
    rng random(7);
    std::vector<std::string> sent;
    for (const std::size_t size : {0, 1, 8, 16'383, 16'384, 16'385, 1 << 20, 5})
      sent.push_back(noise(random, size));
    for (int i = 0; i < 200; ++i)
      sent.push_back(noise(random, random.below(i % 10 == 0 ? 400'000 : 300)));
    std::thread other([&] {
      rng cuts(8);
      for (const auto& each : sent) client.through().send(cut(cuts, each));
    });
    for (const auto& each : sent) server.through().send(cut(random, each));
    other.join();
    REQUIRE(server.has(sent.size()));
    REQUIRE(client.has(sent.size()));
    CHECK(server.frames() == sent);
    CHECK(client.frames() == sent);
    CHECK(client.through().certificate().empty() != tls);
    CHECK(client.through().queued_bytes() == 0);
  }
}

TEST_CASE("a frame without content sends as many zeros") {
  side server, client;
  const auto at = opened(options_for(server));
  dial(client, *at);
  client.through().send({{'x'}, {}});
  client.through().send({{'h'}, {payload::size_only(200'000)}});
  client.through().send({{'x'}, {}});
  REQUIRE(server.has(3));
  CHECK(server.frames()[1] == "h" + std::string(200'000, '\0'));
  CHECK(server.frames()[2] == "x");
}

TEST_CASE("a receiver that handles nothing stops the sender until it handles the bytes") {
  side server, client;
  std::atomic<std::size_t> unhandled{0};
  server.on_frame = [&](const payload& frame) {
    server.through().window().add(frame.size());
    unhandled += frame.size();
  };
  const auto at = opened(options_for(server));
  dial(client, *at);
  constexpr std::size_t count = 64, size = std::size_t{1} << 20;
  client.through().send({{'h'}, {}});
  for (std::size_t i = 0; i < count; ++i) client.through().send({{}, {payload::size_only(size)}});
  REQUIRE(server.is_there());
  const auto begun = std::chrono::steady_clock::now();
  while (!server.through().held_back() && std::chrono::steady_clock::now() - begun < patience)
    std::this_thread::sleep_for(1ms);
  CHECK(server.through().held_back());
  CHECK(unhandled < 16u << 20);
  CHECK(client.through().queued_bytes() > 0);
  for (std::size_t handled = 0; handled < count * size;) {
    const auto now = unhandled.exchange(0);
    server.through().window().remove(now);
    handled += now;
    if (now == 0) std::this_thread::sleep_for(1ms);
    REQUIRE(std::chrono::steady_clock::now() - begun < patience);
  }
  CHECK(server.has(count));
}

TEST_CASE("a pipe that cannot connect says why in an operator's words") {
  const auto why = [](const std::string& address) {
    side client;
    client.start(open_pipe(address, "control", nullptr, {}));
    return client.closed();
  };
  side server;
  auto at = opened(options_for(server));
  const auto address = at->at().text();
  at->close();
  CHECK(why(address) == nothing_listens);
  CHECK(why("no-such-host.invalid:7000") == "no name service knows it");
  CHECK(why("nonsense").find("has no port") != std::string::npos);
}

TEST_CASE("a name of this machine is resolved and its addresses are tried in turn") {
  side server, client;
  const auto at = opened(options_for(server));
  client.start(open_pipe("localhost:" + std::to_string(at->at().port), "control", nullptr, {}));
  client.through().send({{'x'}, {}});
  CHECK(server.has(1));
}

TEST_CASE("a listener and a dialler that speak other protocols find out") {
  const certified by, others;
  side server, client;
  const auto plain = opened(options_for(server));
  const auto with_tls = opened(options_for(server, by.of("server")));
  const auto why = [](const listener& at, const std::shared_ptr<const tls_credentials>& as) {
    side asks;
    dial(asks, at, as);
    return asks.closed();
  };
  CHECK(why(*plain, by.of("client")) == closed_by_other);
  CHECK(plain->refused().garbage == 1);
  CHECK(why(*with_tls, nullptr) == closed_by_other);
  CHECK(with_tls->refused().garbage == 1);
  CHECK(why(*with_tls, others.of("client")) == "TLS failed: certificate verify failed");
  CHECK(with_tls->refused().handshake == 1);
  // Bytes after the gate's first look.
  auto stranger = raw(*plain);
  say(stranger, "SHORT\n\n\n");
  char byte = 0;
  while (recv(stranger.get(), &byte, 1, 0) > 0) {
  }
  CHECK(plain->refused().garbage == 2);
  auto nameless = raw(*plain);
  say(nameless, std::string(protocol_magic) + on_the_wire("no word"));
  while (recv(nameless.get(), &byte, 1, 0) > 0) {
  }
  CHECK(plain->refused().garbage == 3);
  // The other way round: something else listens.
  descriptor other(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  socklen_t length = sizeof here;
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(other.get(), reinterpret_cast<const sockaddr*>(&here), length) == 0);
  REQUIRE(listen(other.get(), 4) == 0);
  getsockname(other.get(), reinterpret_cast<sockaddr*>(&here), &length);
  client.start(
      open_pipe("127.0.0.1:" + std::to_string(ntohs(here.sin_port)), "control", nullptr, {}));
  const descriptor taken(::accept(other.get(), nullptr, nullptr));
  say(taken, "SSH-2.0-OpenSSH_9.2\r\n");
  CHECK(client.closed() == "it does not speak Shoal's protocol");
}

TEST_CASE("a side that finishes sends the rest first and both sides hear of the end once") {
  const certified by;
  for (const bool tls : {false, true})
    for (const bool server_finishes : {false, true}) {
      CAPTURE(tls);
      CAPTURE(server_finishes);
      side server, client;
      const auto at = opened(options_for(server, tls ? by.of("server") : nullptr));
      dial(client, *at, tls ? by.of("client") : nullptr);
      REQUIRE(server.is_there());
      auto& from = server_finishes ? server : client;
      auto& to = server_finishes ? client : server;
      for (int i = 0; i < 40; ++i)
        from.through().send({{static_cast<char>(i)}, {payload::size_only(i == 0 ? 1 : 300'000)}});
      from.through().finish();
      from.through().send({{'l'}, {}});
      CHECK(to.closed() == closed_by_other);
      CHECK(to.frames().size() == 40);
      CHECK(from.closed() == closed_by_other);
      CHECK(to.ends() == 1);
      CHECK(from.ends() == 1);
    }
}

TEST_CASE("a finished pipe whose other side neither reads nor closes ends by itself") {
  side server;
  const auto at = opened(options_for(server));
  const auto silent = raw(*at);
  say(silent, greeting);
  REQUIRE(server.is_there());
  for (int i = 0; i < 40; ++i) server.through().send({{}, {payload::size_only(1'000'000)}});
  server.through().finish();
  CHECK(server.closed() == does_not_answer);
}

TEST_CASE("a pipe that is closed before its start or at any moment later ends once") {
  side server;
  auto options = options_for(server);
  options.on_pipe = [](std::shared_ptr<netem::wire::pipe> made) {
    made->start([](const payload&) {}, [](const std::string&) {});
  };
  const auto at = opened(std::move(options));
  {
    side early;
    auto made = open_pipe(at->at().text(), "control", nullptr, {});
    made->close();
    early.start(std::move(made));
    CHECK(early.closed() == "this side closed the connection");
  }
  rng random(3);
  for (int i = 0; i < 300; ++i) {
    side one;
    dial(one, *at);
    one.through().send({{'x'}, {payload::size_only(random.below(60'000))}});
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(300)));
    one.through().close();
    REQUIRE(one.closed() != "");
    CHECK(one.ends() == 1);
  }
}

TEST_CASE("a TLS client that breaks the protocol after its greeting is cut off and others go on") {
  std::signal(SIGPIPE, SIG_IGN); // OpenSSL's own socket writes
  const certified by;
  std::atomic<int> greeted{0};
  listener_options options;
  options.at = {"127.0.0.1", 0};
  options.credentials = by.of("server");
  std::mutex mutex;
  std::vector<std::shared_ptr<netem::wire::pipe>> kept;
  options.on_pipe = [&](std::shared_ptr<netem::wire::pipe> made) {
    ++greeted;
    made->start([](const payload&) {}, [](const std::string&) {});
    // An answer, as a refusal is one.
    made->send({{'n', 'o'}, {}});
    made->finish();
    std::lock_guard guard(mutex);
    kept.push_back(std::move(made));
  };
  const auto at = opened(std::move(options));
  const auto goes_on = [&] {
    side client;
    dial(client, *at, by.of("client"));
    return client.has(1) && client.closed() == closed_by_other;
  };
  REQUIRE(goes_on());
  SUBCASE("a record that does not decrypt") {
    raw_tls client(*at, by);
    // One call of the kernel for both, so that the other side reads them together.
    BIO* collected = BIO_new(BIO_s_mem());
    BIO_up_ref(collected);
    SSL_set0_wbio(client.tls.get(), collected);
    REQUIRE(client.write(greeting));
    char* bytes = nullptr;
    const auto size = BIO_get_mem_data(collected, &bytes);
    say(client.socket, std::string(bytes, static_cast<std::size_t>(size)) +
                           std::string("\x17\x03\x03\0\x20", 5) + std::string(32, 'x'));
    BIO_free(collected);
    CHECK(client.closed());
  }
  SUBCASE("an update of keys") {
    raw_tls client(*at, by);
    REQUIRE(SSL_key_update(client.tls.get(), SSL_KEY_UPDATE_REQUESTED) == 1);
    client.write(greeting);
    CHECK(client.closed());
    CHECK(greeted == 1);
  }
  SUBCASE("an end in the middle of the greeting") {
    raw_tls client(*at, by);
    REQUIRE(client.write(greeting.substr(0, 9)));
    shutdown(client.socket.get(), SHUT_WR);
    CHECK(client.closed());
    CHECK(greeted == 1);
  }
  for (int i = 0; i < 8; ++i) CHECK(goes_on());
}

TEST_CASE("the first frame of a side that dials is short") {
  side server;
  const auto at = opened(options_for(server));
  const auto stranger = raw(*at);
  const auto prefix = frame_prefix(70'000);
  say(stranger, greeting + std::string(prefix.begin(), prefix.end()));
  REQUIRE(server.is_there());
  CHECK(server.closed() == "it sent bytes that are no frames");
  CHECK(server.through().malformed());
}

TEST_CASE("a pipe that its owner drops unstarted closes") {
  side unused, client;
  auto options = options_for(unused);
  options.on_pipe = [](const std::shared_ptr<netem::wire::pipe>&) {};
  const auto at = opened(std::move(options));
  dial(client, *at);
  CHECK(client.closed() == closed_by_other);
}

TEST_CASE("frames that never end cannot use up the memory of others") {
  side server, client;
  auto options = options_for(server);
  options.memory_bytes = std::size_t{3} << 20;
  std::vector<std::shared_ptr<side>> sides;
  std::mutex mutex;
  options.on_pipe = [&](std::shared_ptr<netem::wire::pipe> made) {
    std::lock_guard guard(mutex);
    sides.push_back(std::make_shared<side>());
    sides.back()->start(std::move(made));
  };
  const auto at = opened(std::move(options));
  std::vector<descriptor> greedy;
  const auto long_frame = on_the_wire(std::string(1 << 20, 'x'));
  for (int i = 0; i < 4; ++i) {
    greedy.push_back(raw(*at));
    say(greedy.back(), greeting + on_the_wire("hello") + long_frame.substr(0, 10'000));
  }
  const auto count = [&] {
    std::lock_guard guard(mutex);
    return sides.size();
  };
  const auto begun = std::chrono::steady_clock::now();
  const auto until = [&](const std::function<bool()>& done) {
    while (!done() && std::chrono::steady_clock::now() - begun < patience)
      std::this_thread::sleep_for(1ms);
    return done();
  };
  REQUIRE(until([&] { return count() == 4; }));
  // Three megabytes are for three such frames.
  CHECK(until([&] {
    std::lock_guard guard(mutex);
    return std::count_if(sides.begin(), sides.end(),
                         [](const auto& each) { return each->through().held_back(); }) == 1;
  }));
  // Short frames pass, and an end of the greedy makes room.
  dial(client, *at);
  client.through().send({{'x'}, {}});
  client.through().send({{'y'}, {payload::size_only(1 << 20)}});
  REQUIRE(until([&] { return count() == 5; }));
  CHECK(sides[4]->has(1));
  greedy.clear();
  CHECK(sides[4]->has(2));
}

TEST_CASE("no callback comes after a listener is closed") {
  std::atomic<bool> closed{false}, late{false};
  listener_options options;
  options.at = {"127.0.0.1", 0};
  std::vector<std::shared_ptr<netem::wire::pipe>> kept;
  std::mutex mutex;
  const auto call = [&] {
    if (closed) late = true;
  };
  options.on_pipe = [&](std::shared_ptr<netem::wire::pipe> made) {
    call();
    made->start([&](const payload&) { call(); }, [&](const std::string&) { call(); });
    std::lock_guard guard(mutex);
    kept.push_back(std::move(made));
  };
  auto at = opened(std::move(options));
  std::vector<std::unique_ptr<side>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<side>());
    dial(*clients.back(), *at);
    for (int k = 0; k < 50; ++k) clients.back()->through().send({{'x'}, {}});
  }
  const auto silent = raw(*at); // still shakes hands
  say(silent, "SHOAL");
  at->close();
  closed = true;
  for (const auto& each : clients) CHECK(each->closed() != "");
  CHECK_FALSE(late);
}
