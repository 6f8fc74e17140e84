// An attacker: raw bytes on a socket, TLS with wrong parameters, and streams of a host that sends
// anything.
#pragma once

#include "netem/wire/frames.hpp"
#include "netem/wire/listener.hpp"
#include "netem/wire/network.hpp"
#include "netem/wire/pipe.hpp"
#include "tests/cluster/support/swarm.hpp"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shoal::cluster {

/// The address of attackers. The gate limits the waiting connections of one address, so clients at
/// other addresses do not suffer.
inline constexpr const char* attacker_address = "127.0.0.2";

class raw_connection {
public:
  explicit raw_connection(std::uint16_t port, const char* from = attacker_address);
  ~raw_connection();
  raw_connection(raw_connection&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  raw_connection& operator=(raw_connection&&) = delete;

  bool connected() const noexcept { return socket_ >= 0; }
  void send(std::string_view bytes) const;
  /// Waits until the other side has closed the connection. Returns false if it did not in time.
  bool closed(std::chrono::milliseconds limit = patience) const;
  /// The descriptor, which this object still owns.
  int get() const noexcept { return socket_; }

private:
  int socket_ = -1;
};

/// Does a TLS handshake with the port. Returns OpenSSL's reason for a failure, or "". In TLS 1.3
/// the client is done before the server has checked the certificate, so the function also reads
/// once. The connection comes from another address than a raw_connection.
std::string tls_handshake(std::uint16_t port, const identity& as, int version);

/// Credentials that show `as`, and accept any server.
std::shared_ptr<const netem::wire::tls_credentials> credentials_of(const identity& as,
                                                                   const std::string& ca_pem);

/// The two pipes of a link, dialled as a host does.
class false_host {
public:
  false_host(const std::string& target,
             std::shared_ptr<const netem::wire::tls_credentials> credentials);
  ~false_host();
  false_host(const false_host&) = delete;

  /// Sends a frame: 0 on the control pipe, 1 on the bulk pipe.
  void send(int pipe, netem::wire::frame what);
  void send(int pipe, std::span<const std::byte> bytes);
  /// Sends `says` on both pipes.
  void greet(const netem::wire::hello& says);
  /// The other side's hello, once it has come on the control pipe. The link is then up.
  std::optional<netem::wire::hello> answer();
  /// The other side's reason to refuse, from refusal_names. "closed" if it closed without a reason,
  /// "" if neither came in time.
  std::string refused();
  /// The reason for which the first pipe was closed, in an operator's words.
  std::string why_closed() const;
  /// Waits until the other side has closed a pipe of the link.
  bool closed(std::chrono::milliseconds limit = patience);

private:
  struct seen {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<netem::wire::hello> hello;
    std::string refused, why;
    int closed = 0;
  };
  template <class Predicate>
  bool wait(std::unique_lock<std::mutex>& lock, Predicate true_now,
            std::chrono::milliseconds limit = patience) {
    return seen_->changed.wait_for(lock, limit, true_now);
  }
  std::shared_ptr<seen> seen_ = std::make_shared<seen>();
  std::shared_ptr<netem::wire::pipe> pipes_[2];
};

/// A host that listens with a member's keys, and does with each pipe what the test says.
class false_listener {
public:
  using on_frame = std::function<void(netem::wire::pipe& through, netem::wire::frame_kind kind,
                                      const payload& bytes)>;
  /// `keys`: a folder of keys. `handle` is called for each frame, on any thread.
  false_listener(const std::string& keys, on_frame handle);
  ~false_listener();
  false_listener(const false_listener&) = delete;

  /// The address, as host:port.
  std::string at() const { return listener_->at().text(); }
  /// The pipes that were opened so far.
  std::size_t opened() const;

private:
  struct taken {
    std::mutex mutex;
    std::vector<std::shared_ptr<netem::wire::pipe>> pipes;
  };
  std::shared_ptr<taken> taken_ = std::make_shared<taken>();
  std::unique_ptr<netem::wire::listener> listener_;
};

/// The frame by which a host refuses a link.
netem::wire::frame refused_frame(netem::wire::refusal why, std::string_view text);

/// Shows `as`, opens a control pipe, and writes `bytes` where frames belong. Returns true once the
/// other side has closed the connection, and false if it has not in time.
bool send_unframed(std::uint16_t port, const identity& as, const std::string& bytes);

/// A frame of a message: its head, and any bytes as its body.
netem::wire::frame message_frame(const netem::wire::message_head& head, std::string_view body);
/// A whole message of `binary`, from the sender's actor `from` to the receiver's `to`, given as
/// ordinals.
netem::wire::frame message_to(std::uint32_t to, std::string_view binary, std::uint32_t from = 7);
/// A whole message to the actor that introduced the other side.
netem::wire::frame message_to(const netem::wire::hello& theirs, std::string_view binary);
/// Three fast peers that train on a small quadratic, for attacks on one of them.
std::string attacked_swarm(std::uint64_t seed, std::uint64_t epochs);
/// Fast peers that train on a very small quadratic until they are stopped.
std::string endless_swarm(unsigned peers, std::string_view averaging = {},
                          std::string_view more = {});
/// The binary form of a message of type `name` with `content`.
std::string binary_of(std::string_view name, std::string_view content = {});

} // namespace shoal::cluster
