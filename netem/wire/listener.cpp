#include "netem/wire/listener.hpp"

#include "kernels/base/descriptor.hpp"
#include "netem/wire/frames.hpp"
#include "netem/wire/grpc_pipe.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

class server_pipe final : public grpc_pipe, public grpc::ServerGenericBidiReactor {
public:
  server_pipe(grpc::GenericCallbackServerContext* context, std::string kind,
              const pipe_options& options)
      : grpc_pipe(std::move(kind), options), context_(context), peer_(context->peer()),
        certificate_(certificate_of(context->auth_context())) {}

  void start(std::function<void(payload)> on_frame,
             std::function<void(const std::string&)> on_closed) override {
    go(std::move(on_frame), std::move(on_closed));
  }
  /// Must be called before gRPC can finish the stream.
  void keep(std::shared_ptr<server_pipe> self) { self_ = std::move(self); }
  /// `gone` is destroyed with the pipe.
  void count_as(std::shared_ptr<void> gone) { counted_ = std::move(gone); }

  std::string certificate() const override { return certificate_; }
  std::string peer() const override { return peer_; }

private:
  void start_read(grpc::ByteBuffer* into) override { grpc_goes_on(), StartRead(into); }
  void start_write(const grpc::ByteBuffer* what) override { grpc_goes_on(), StartWrite(what); }
  void start_finish() override { end(grpc::Status::OK); }
  void cancel() override {
    std::lock_guard guard(context_mutex_);
    if (context_ != nullptr) grpc_goes_on(), context_->TryCancel();
  }
  void idle() override { end({grpc::StatusCode::CANCELLED, ""}); }
  void end(const grpc::Status& status) {
    if (!finished_.exchange(true)) grpc_goes_on(), Finish(status);
  }

  void OnReadDone(bool ok) override { read_done(ok), grpc_goes_on(); }
  void OnWriteDone(bool ok) override { write_done(ok), grpc_goes_on(); }
  void OnDone() override {
    {
      std::lock_guard guard(context_mutex_);
      context_ = nullptr;
    }
    ended("the other side is gone");
    auto self = std::move(self_);
  }

  std::mutex context_mutex_;
  grpc::GenericCallbackServerContext* context_; // owned by gRPC until OnDone
  const std::string peer_, certificate_;
  std::atomic<bool> finished_{false};
  std::shared_ptr<void> counted_;
  std::shared_ptr<server_pipe> self_; // until the stream is over
};

/// The open streams, in all and from each address. Thread safety: all.
class open_streams : public std::enable_shared_from_this<open_streams> {
public:
  /// Returns an object that counts as a stream from `peer` until its end. Null: there are too many.
  std::shared_ptr<void> add(const std::string& peer, const listener_options& limits) {
    const auto from = peer.substr(0, peer.rfind(':'));
    std::lock_guard guard(mutex_);
    auto& of_one = by_address_[from];
    if (all_ >= limits.most_streams || of_one >= limits.most_streams_from_one) {
      if (of_one == 0) by_address_.erase(from);
      return nullptr;
    }
    ++all_;
    ++of_one;
    return {static_cast<void*>(this),
            [self = shared_from_this(), from](void*) { self->remove(from); }};
  }

private:
  void remove(const std::string& from) {
    std::lock_guard guard(mutex_);
    --all_;
    if (const auto found = by_address_.find(from);
        found != by_address_.end() && --found->second == 0)
      by_address_.erase(found);
  }
  std::mutex mutex_; // guards the members below
  std::size_t all_ = 0;
  std::map<std::string, std::size_t> by_address_;
};

class service final : public grpc::CallbackGenericService {
public:
  service(pipe_options pipes, std::function<void(std::shared_ptr<server_pipe>)> on_pipe)
      : pipes_(pipes), on_pipe_(std::move(on_pipe)) {}

  grpc::ServerGenericBidiReactor*
  CreateReactor(grpc::GenericCallbackServerContext* context) override {
    constexpr std::string_view prefix = "/shoal/";
    std::string kind = context->method();
    kind = kind.starts_with(prefix) ? kind.substr(prefix.size()) : std::string{};
    auto made = std::make_shared<server_pipe>(context, kind, pipes_);
    auto* out = made.get();
    made->keep(made);
    try {
      on_pipe_(made);
    } catch (...) {
      made->close();
    }
    return out;
  }

private:
  pipe_options pipes_;
  std::function<void(std::shared_ptr<server_pipe>)> on_pipe_;
};

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

class gate final : public listener {
public:
  explicit gate(listener_options options)
      : options_(std::move(options)), service_(options_.pipes,
                                               [this](std::shared_ptr<server_pipe> made) {
                                                 shook_hands(made->peer());
                                                 take(std::move(made));
                                               }),
        bell_(eventfd(0, EFD_CLOEXEC)), poll_(epoll_create1(EPOLL_CLOEXEC)) {}
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

    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&service_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(max_grpc_bytes));
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                               static_cast<int>(options_.timeout.count()));
    // Closes connections that shake hands and open no stream, and those whose stream has ended.
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                               static_cast<int>(options_.timeout.count()));
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                               static_cast<int>(options_.pipes.lookahead_bytes));
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, 1 << 20);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 4);
    builder.SetResourceQuota(grpc::ResourceQuota("shoal").Resize(options_.memory_bytes));
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        options_.credentials);
    server_ = builder.BuildAndStart();
    if (!server_) return failure{"cannot start the server on " + options_.at.text()};
    watch(socket_.get(), EPOLLIN);
    watch(bell_.get(), EPOLLIN);
    thread_ = std::thread([this] { serve(); });
    return {};
  }

  const address& at() const noexcept override { return options_.at; }
  refused_connections refused() const noexcept override {
    return {silent_, garbage_, too_many_, handshake_};
  }

  void close() override {
    if (closing_.exchange(true)) return;
    const std::uint64_t one = 1;
    if (thread_.joinable()) {
      if (::write(bell_.get(), &one, sizeof(one)) != sizeof(one)) std::abort();
      thread_.join();
    }
    if (server_) {
      server_->Shutdown(std::chrono::system_clock::now());
      server_->Wait();
    }
  }

private:
  struct waiting {
    descriptor socket;
    steady::time_point since;
    std::string from;
    std::uint16_t port;
  };
  /// A connection that gRPC has taken over and that has opened no stream yet.
  struct handshaking {
    steady::time_point since;
    std::string from;
    std::uint16_t port;
  };

  void take(std::shared_ptr<server_pipe> made) {
    auto counted = streams_->add(made->peer(), options_);
    if (!counted) {
      ++too_many_;
      made->start([](payload) {}, [](const std::string&) {});
      return made->close();
    }
    made->count_as(std::move(counted));
    options_.on_pipe(std::move(made));
  }

  /// Takes a connection off the list. gRPC writes `peer` as ipv4:10.0.0.5:41234 or
  /// ipv6:%5B::1%5D:41234.
  void shook_hands(const std::string& peer) {
    const auto colon = peer.rfind(':');
    const auto port =
        colon == std::string::npos ? 0 : std::strtoul(peer.c_str() + colon + 1, nullptr, 10);
    std::lock_guard guard(mutex_);
    const auto found =
        std::find_if(in_handshake_.begin(), in_handshake_.end(), [&](const handshaking& each) {
          return each.port == port &&
                 (each.from.size() != sizeof(in_addr) ||
                  peer.find(':' + numbers_of(each.from) + ':') != std::string::npos);
        });
    if (found != in_handshake_.end()) in_handshake_.erase(found);
  }
  static std::string numbers_of(const std::string& ipv4) {
    char out[INET_ADDRSTRLEN] = "";
    return inet_ntop(AF_INET, ipv4.data(), out, sizeof(out)) != nullptr ? out : "";
  }

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
      std::lock_guard guard(mutex_);
      for (; !in_handshake_.empty() && in_handshake_.front().since <= late;
           in_handshake_.pop_front())
        ++handshake_;
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
      waiting_[which] = {std::move(made), now, std::move(key), port_of(from)};
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
    const auto says = look_at_first({first, static_cast<std::size_t>(got)}, options_.tls);
    if (says == first_bytes::garbage) {
      ++garbage_;
      return drop(found);
    }
    // more bytes will come, or the time limit ends the wait
    if (says == first_bytes::too_few) return;
    {
      std::lock_guard guard(mutex_);
      const auto& from = found->second.from;
      const auto of_one = std::count_if(in_handshake_.begin(), in_handshake_.end(),
                                        [&](const handshaking& each) { return each.from == from; });
      if (in_handshake_.size() >= options_.most_in_handshake ||
          static_cast<std::size_t>(of_one) >= options_.most_in_handshake_from_one) {
        ++too_many_;
        return drop(found);
      }
      in_handshake_.push_back({steady::now(), from, found->second.port});
    }
    epoll_ctl(poll_.get(), EPOLL_CTL_DEL, which, nullptr);
    forget(found->second.from);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = socket_.get();
    connection.fd = found->second.socket.release();
    waiting_.erase(found);
    const int yes = 1;
    setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    acceptor_->HandleNewConnection(&connection);
  }

  listener_options options_;
  service service_;
  descriptor socket_, bell_, poll_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
  const std::shared_ptr<open_streams> streams_ = std::make_shared<open_streams>();
  std::atomic<bool> closing_{false};
  std::atomic<std::uint64_t> silent_{0}, garbage_{0}, too_many_{0}, handshake_{0};
  std::mutex mutex_;                     // guards in_handshake_
  std::deque<handshaking> in_handshake_; // in the order of arrival
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
