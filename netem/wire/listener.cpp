#include "netem/wire/listener.hpp"

#include "kernels/base/descriptor.hpp"
#include "netem/wire/frames.hpp"
#include "netem/wire/socket_pipe.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace shoal::netem::wire {

namespace {

using steady = std::chrono::steady_clock;

/// The pause before the next attempt to accept, if no descriptor is left.
constexpr auto pause_when_full = std::chrono::milliseconds(100);

std::string place_of(const sockaddr_storage& from) {
  const auto* bytes =
      from.ss_family == AF_INET
          ? reinterpret_cast<const char*>(&reinterpret_cast<const sockaddr_in&>(from).sin_addr)
          : reinterpret_cast<const char*>(&reinterpret_cast<const sockaddr_in6&>(from).sin6_addr);
  return {bytes, from.ss_family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr)};
}

std::uint16_t port_of(const sockaddr_storage& from) {
  return ntohs(from.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(from).sin_port
                                         : reinterpret_cast<const sockaddr_in6&>(from).sin6_port);
}

failure cannot_listen(const address& at) {
  const int code = errno;
  std::string why = std::strerror(code);
  if (code == EADDRINUSE) why = "another program uses that port; choose another one, or stop it";
  if (code == EADDRNOTAVAIL)
    why = "this machine has no such address; 0.0.0.0 listens on all that it has";
  if (code == EACCES) why = "ports below 1024 are for root";
  return failure{"cannot listen on " + at.text() + ": " + why};
}

result<descriptor> bound_to(const address& at) {
  auto numbers = resolve(at);
  if (!numbers) return failure{numbers.error()};
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const auto port = std::to_string(at.port);
  if (getaddrinfo(numbers->host.c_str(), port.c_str(), &hints, &found) != 0)
    return failure{"cannot listen on " + at.text() + ": no address of a machine"};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner{found, freeaddrinfo};
  descriptor out(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (out.get() < 0) return cannot_listen(at);
  const int yes = 1;
  setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(out.get(), found->ai_addr, found->ai_addrlen) != 0) return cannot_listen(at);
  return out;
}

/// The connections that have passed the gate: those that shake hands, and the open streams. Lives
/// as long as one of them. Thread safety: all.
class passed_connections : public std::enable_shared_from_this<passed_connections> {
public:
  explicit passed_connections(const listener_options& options)
      : options_(options), incomplete_(std::make_shared<byte_budget>(options.memory_bytes)) {}

  /// Shakes hands. Returns false if too many others do. `from`: the address without the port.
  bool take(descriptor socket, const std::string& from, std::string peer) {
    std::uint64_t key = 0;
    {
      std::lock_guard guard(mutex_);
      auto& of_one = by_address_[from];
      if (closed_ || in_handshake_ >= options_.most_in_handshake ||
          of_one.in_handshake >= options_.most_in_handshake_from_one) {
        forget_if_none(from);
        return false;
      }
      ++in_handshake_;
      ++of_one.in_handshake;
      key = ++last_;
      all_.emplace(key, connection{from, false, {}});
    }
    socket_pipe::accepted what;
    what.stream = options_.credentials
                      ? options_.credentials->open(std::move(socket), tls_side::listens)
                      : std::make_unique<socket_stream>(std::move(socket));
    what.peer = std::move(peer);
    what.timeout = options_.timeout;
    what.incomplete = incomplete_;
    what.decided = [self = shared_from_this(), key](socket_pipe::accepted::outcome said,
                                                    const std::shared_ptr<socket_pipe>& made) {
      self->decided(key, said, made);
    };
    what.gone = [self = shared_from_this(), key] { self->gone(key); };
    const auto made = socket_pipe::accept(std::move(what), options_.pipes);
    std::lock_guard guard(mutex_);
    if (const auto found = all_.find(key); found != all_.end()) found->second.through = made;
    return true;
  }

  /// Closes all. Returns when none of their callbacks runs any more, unless a callback calls it.
  void close() {
    std::vector<std::shared_ptr<pipe>> open;
    std::unique_lock lock(mutex_);
    closed_ = true;
    for (const auto& [key, each] : all_)
      if (auto held = each.through.lock()) open.push_back(std::move(held));
    lock.unlock();
    for (const auto& each : open) each->close();
    open.clear();
    lock.lock();
    if (!io_loop::is_on_a_loop()) none_.wait(lock, [this] { return all_.empty(); });
  }

  std::uint64_t garbage() const noexcept { return garbage_; }
  std::uint64_t too_many() const noexcept { return too_many_; }
  std::uint64_t failed() const noexcept { return failed_; }

private:
  struct connection {
    std::string from;
    bool is_stream = false;
    std::weak_ptr<pipe> through;
  };
  struct of_address {
    std::size_t in_handshake = 0, streams = 0;
  };

  void decided(std::uint64_t key, socket_pipe::accepted::outcome said,
               const std::shared_ptr<socket_pipe>& made) {
    using outcome = socket_pipe::accepted::outcome;
    bool closed = false, good = said == outcome::greeted;
    {
      std::lock_guard guard(mutex_);
      closed = closed_;
      auto& which = all_.at(key);
      auto& of_one = by_address_.at(which.from);
      --in_handshake_;
      --of_one.in_handshake;
      if (good &&
          (streams_ >= options_.most_streams || of_one.streams >= options_.most_streams_from_one)) {
        good = false;
        ++too_many_;
      } else if (good) {
        which.is_stream = true;
        ++streams_;
        ++of_one.streams;
      }
    }
    if (said == outcome::garbage) ++garbage_;
    if (said == outcome::failed && !closed) ++failed_;
    if (!good || closed) return;
    try {
      options_.on_pipe(made);
    } catch (...) {
      made->close();
    }
  }

  void gone(std::uint64_t key) {
    std::lock_guard guard(mutex_);
    const auto found = all_.find(key);
    if (found->second.is_stream) {
      --streams_;
      --by_address_.at(found->second.from).streams;
    }
    forget_if_none(found->second.from);
    all_.erase(found);
    if (all_.empty()) none_.notify_all();
  }

  void forget_if_none(const std::string& from) {
    // Another connection of the address may have ended in between.
    const auto found = by_address_.find(from);
    if (found != by_address_.end() && found->second.in_handshake == 0 && found->second.streams == 0)
      by_address_.erase(found);
  }

  const listener_options options_;
  const std::shared_ptr<byte_budget> incomplete_;
  std::atomic<std::uint64_t> garbage_{0}, too_many_{0}, failed_{0};
  std::mutex mutex_; // guards the members below
  std::condition_variable none_;
  bool closed_ = false;
  std::uint64_t last_ = 0;
  std::size_t in_handshake_ = 0, streams_ = 0;
  std::map<std::uint64_t, connection> all_;
  std::map<std::string, of_address> by_address_;
};

class gate final : public listener {
public:
  explicit gate(listener_options options)
      : options_(std::move(options)), bell_(eventfd(0, EFD_CLOEXEC)),
        poll_(epoll_create1(EPOLL_CLOEXEC)) {}
  ~gate() override { close(); }

  result<void> open() {
    auto bound = bound_to(options_.at);
    if (!bound) return failure{bound.error()};
    socket_ = std::move(*bound);
    if (listen(socket_.get(), 512) != 0) return cannot_listen(options_.at);
    sockaddr_storage mine{};
    socklen_t length = sizeof(mine);
    getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&mine), &length);
    options_.at.port = port_of(mine);
    passed_ = std::make_shared<passed_connections>(options_);
    watch(socket_.get(), EPOLLIN);
    watch(bell_.get(), EPOLLIN);
    thread_ = std::thread([this] { serve(); });
    return {};
  }

  const address& at() const noexcept override { return options_.at; }
  refused_connections refused() const noexcept override {
    return {silent_, garbage_ + passed_->garbage(), too_many_ + passed_->too_many(),
            passed_->failed()};
  }

  void close() override {
    if (closing_.exchange(true)) return;
    const std::uint64_t one = 1;
    if (thread_.joinable()) {
      if (::write(bell_.get(), &one, sizeof(one)) != sizeof(one)) std::abort();
      thread_.join();
    }
    waiting_.clear();
    socket_ = descriptor();
    if (passed_) passed_->close();
  }

private:
  struct waiting {
    descriptor socket;
    steady::time_point since;
    std::string from, peer; // the address without the port, and with it
  };
  void watch(int which, std::uint32_t what) {
    epoll_event event{};
    event.events = what;
    event.data.fd = which;
    epoll_ctl(poll_.get(), EPOLL_CTL_ADD, which, &event);
  }

  void serve() {
    std::array<epoll_event, 64> events;
    while (!closing_) {
      const int count = epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()),
                                   waiting_.empty() && !accept_again_ ? 1000 : 50);
      for (int i = 0; i < count && !closing_; ++i) {
        const int which = events[static_cast<std::size_t>(i)].data.fd;
        if (which == socket_.get())
          accept_all();
        else if (which != bell_.get())
          look_at(which);
      }
      if (accept_again_ && *accept_again_ <= steady::now()) {
        accept_again_.reset();
        watch(socket_.get(), EPOLLIN);
      }
      const auto late = steady::now() - options_.timeout;
      while (!order_.empty() && order_.front().first <= late) {
        const auto which = order_.front();
        order_.pop_front();
        if (const auto found = waiting_.find(which.second);
            found != waiting_.end() && found->second.since == which.first) {
          ++silent_;
          drop(found);
        }
      }
    }
  }

  void accept_all() {
    for (;;) {
      sockaddr_storage from{};
      socklen_t length = sizeof(from);
      descriptor made(accept4(socket_.get(), reinterpret_cast<sockaddr*>(&from), &length,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (made.get() < 0) {
        const bool is_full =
            errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        // No descriptor is left: the oldest waiting connections are closed.
        if (is_full && make_room({})) continue;
        // The socket stays readable, so watching it would keep the thread busy.
        if (is_full) {
          epoll_ctl(poll_.get(), EPOLL_CTL_DEL, socket_.get(), nullptr);
          accept_again_ = steady::now() + pause_when_full;
        }
        return;
      }
      auto key = place_of(from);
      if (per_address_[key] >= options_.most_waiting_from_one) make_room(key);
      if (waiting_.size() >= options_.most_waiting) make_room({});
      ++per_address_[key];
      const int which = made.get();
      const auto now = steady::now();
      order_.emplace_back(now, which);
      waiting_[which] = {std::move(made), now, std::move(key),
                         socket_text(reinterpret_cast<const sockaddr*>(&from), length)};
      watch(which, EPOLLIN | EPOLLRDHUP | EPOLLET);
    }
  }

  /// Closes the connection that has waited longest. With `key`, considers only those from that
  /// address.
  bool make_room(const std::string& key) {
    for (const auto& [since, which] : order_)
      if (const auto found = waiting_.find(which); found != waiting_.end() &&
                                                   found->second.since == since &&
                                                   (key.empty() || found->second.from == key)) {
        ++too_many_;
        drop(found);
        return true;
      }
    return false;
  }

  void drop(std::map<int, waiting>::iterator which) {
    forget(which->second.from);
    waiting_.erase(which); // close() removes the descriptor from epoll as well
  }
  void forget(const std::string& from) {
    if (const auto found = per_address_.find(from);
        found != per_address_.end() && --found->second == 0)
      per_address_.erase(found);
  }

  void look_at(int which) {
    const auto found = waiting_.find(which);
    if (found == waiting_.end()) return;
    char first[first_bytes_looked_at];
    const auto got = recv(which, first, sizeof(first), MSG_PEEK);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      ++silent_;
      return drop(found);
    }
    const auto says =
        look_at_first({first, static_cast<std::size_t>(got)}, options_.credentials != nullptr);
    if (says == first_bytes::garbage) {
      ++garbage_;
      return drop(found);
    }
    // more bytes will come, or the time limit ends the wait
    if (says == first_bytes::too_few) return;
    epoll_ctl(poll_.get(), EPOLL_CTL_DEL, which, nullptr);
    const int yes = 1;
    setsockopt(which, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    auto passes = std::move(found->second);
    forget(passes.from);
    waiting_.erase(found);
    if (!passed_->take(std::move(passes.socket), passes.from, std::move(passes.peer))) ++too_many_;
  }

  listener_options options_;
  descriptor socket_, bell_, poll_;
  std::thread thread_;
  std::shared_ptr<passed_connections> passed_;
  std::atomic<bool> closing_{false};
  std::atomic<std::uint64_t> silent_{0}, garbage_{0}, too_many_{0};
  // Only the gate's thread uses the members below.
  std::optional<steady::time_point> accept_again_; // set while no descriptor is left
  std::map<int, waiting> waiting_;
  std::deque<std::pair<steady::time_point, int>> order_;
  std::map<std::string, std::size_t> per_address_;
};

} // namespace

result<void> check_can_listen(const address& at) {
  if (auto bound = bound_to(at); !bound) return failure{bound.error()};
  return {};
}

result<std::unique_ptr<listener>> listener::open(listener_options options) {
  auto out = std::make_unique<gate>(std::move(options));
  if (auto done = out->open(); !done) return failure{done.error()};
  return std::unique_ptr<listener>{std::move(out)};
}

} // namespace shoal::netem::wire
