// Runs the flows of a transfer pattern over the kernel's TCP. Each flow has a connection, and each
// end is in the network namespace of its host. Host i is namespace PREFIX<i> at 10.77.i.2. A flow
// connects at its start. Prints `index end_seconds` for each flow: the time at which its last byte
// was read, since the pattern's start.
//
//   tcp_transfer PATTERN PREFIX [CONGESTION_CONTROL]

#include "tests/accuracy/pattern.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <thread>

namespace {

using clock_type = std::chrono::steady_clock;

constexpr int first_port = 20000;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in address(std::size_t host, std::size_t flow) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<std::uint16_t>(first_port + flow));
  a.sin_addr.s_addr = htonl((10u << 24) | (77u << 16) | (static_cast<unsigned>(host) << 8) | 2u);
  return a;
}

/// A socket belongs to the namespace in which it was made.
int socket_in(const std::string& name_space, const char* congestion_control) {
  const int handle = open(("/run/netns/" + name_space).c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0 || setns(handle, CLONE_NEWNET) < 0) fail(name_space);
  close(handle);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  if (congestion_control && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion_control,
                                       std::strlen(congestion_control)) < 0)
    fail(congestion_control);
  return fd;
}

void send_all(int fd, sockaddr_in to, std::uint64_t bytes, clock_type::time_point start,
              std::atomic<bool>& failed) {
  static const std::vector<char> data(1 << 16, 'x');
  std::this_thread::sleep_until(start);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) < 0) {
    std::perror("connect");
    failed = true;
  }
  while (bytes > 0 && !failed) {
    const ssize_t n =
        send(fd, data.data(), std::min<std::uint64_t>(bytes, data.size()), MSG_NOSIGNAL);
    if (n <= 0) {
      std::perror("send");
      failed = true;
      break;
    }
    bytes -= static_cast<std::uint64_t>(n);
  }
  shutdown(fd, SHUT_WR);
}

void receive_all(int listener, std::uint64_t bytes, clock_type::time_point& end) {
  std::vector<char> data(1 << 16);
  const int fd = accept(listener, nullptr, nullptr);
  while (bytes > 0) {
    const ssize_t n = recv(fd, data.data(), data.size(), 0);
    if (n <= 0) break;
    bytes -= static_cast<std::uint64_t>(n);
  }
  if (bytes == 0) end = clock_type::now();
  close(fd);
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: tcp_transfer PATTERN PREFIX [CONGESTION_CONTROL]\n");
    return 2;
  }
  try {
    const auto p = shoal::accuracy::read_pattern(argv[1]);
    const std::string prefix = argv[2];
    const char* congestion_control = argc > 3 ? argv[3] : nullptr;
    std::vector<int> listeners, senders;
    for (std::size_t i = 0; i < p.flows.size(); ++i) {
      const auto& f = p.flows[i];
      listeners.push_back(socket_in(prefix + std::to_string(f.to), congestion_control));
      const auto at = address(f.to, i);
      if (bind(listeners.back(), reinterpret_cast<const sockaddr*>(&at), sizeof at) < 0 ||
          listen(listeners.back(), 1) < 0)
        fail("bind");
      senders.push_back(socket_in(prefix + std::to_string(f.from), congestion_control));
    }

    const auto begin = clock_type::now() + std::chrono::milliseconds(200);
    std::vector<clock_type::time_point> end(p.flows.size());
    std::atomic<bool> failed = false;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < p.flows.size(); ++i) {
      const auto& f = p.flows[i];
      threads.emplace_back([&, i] { receive_all(listeners[i], p.flows[i].bytes, end[i]); });
      threads.emplace_back([&, i] {
        send_all(senders[i], address(f.to, i), f.bytes,
                 begin + std::chrono::nanoseconds(p.flows[i].start_ns), failed);
        if (failed) std::_Exit(3);
      });
    }
    for (auto& t : threads) t.join();
    for (std::size_t i = 0; i < end.size(); ++i)
      std::printf("%zu %.6f\n", i, std::chrono::duration<double>(end[i] - begin).count());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tcp_transfer: %s\n", error.what());
    return 1;
  }
}
