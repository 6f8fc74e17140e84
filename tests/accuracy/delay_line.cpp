// The core of the emulated network. The program takes IPv4 packets from one TUN device for each
// host, and holds each packet for the delay of both access links. Then it gives the packet back to
// the kernel, which routes it to its host. The program replaces netem, which not every kernel has.
// Host i is 10.77.i.0/24; its device is d<i>, created here.
//
//   delay_line [--loss P] DELAY_ns ...
//     DELAY_ns     the one-way delay of each host's access link
//     --loss P     loses a packet with this probability (the same ones in each run)
//
// Prints `ready` once the devices exist, and runs until SIGTERM. At the end it prints how late
// packets were.

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <queue>
#include <random>
#include <string>
#include <vector>

namespace {

volatile sig_atomic_t stopped = 0;

struct held {
  std::int64_t due_ns;
  std::uint64_t order; // packets that are due at once leave in the order of their arrival
  std::size_t from;
  std::vector<unsigned char> bytes;
  bool operator<(const held& other) const {
    return due_ns != other.due_ns ? due_ns > other.due_ns : order > other.order;
  }
};

std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

int open_tun(const std::string& name) {
  const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0) {
    std::perror(("delay_line: " + name).c_str());
    std::exit(1);
  }
  return fd;
}

} // namespace

int main(int argc, char** argv) {
  std::vector<std::int64_t> delay_ns;
  std::vector<int> tun;
  const int events = epoll_create1(0);
  std::mt19937 draw(1);
  std::bernoulli_distribution lost(0);
  int first = 1;
  if (argc > 2 && std::string(argv[1]) == "--loss") {
    lost = std::bernoulli_distribution(std::atof(argv[2]));
    first = 3;
  }
  for (int i = first; i < argc; ++i) {
    delay_ns.push_back(std::atoll(argv[i]));
    std::string name = "d";
    name += std::to_string(i - first);
    tun.push_back(open_tun(name));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = static_cast<std::uint32_t>(i - first);
    epoll_ctl(events, EPOLL_CTL_ADD, tun.back(), &event);
  }
  struct sigaction action {};
  action.sa_handler = [](int) { stopped = 1; };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  sched_param priority{};
  priority.sched_priority = 1;
  // without this right, packets are only less punctual
  sched_setscheduler(0, SCHED_FIFO, &priority);
  std::printf("ready\n");
  std::fflush(stdout);

  std::priority_queue<held> waiting;
  std::vector<std::int64_t> late_ns;
  std::uint64_t order = 0, refused = 0;
  unsigned char buffer[65536];
  while (!stopped) {
    timespec wait{1, 0};
    if (!waiting.empty()) {
      const std::int64_t left = std::max<std::int64_t>(0, waiting.top().due_ns - now_ns());
      wait = {left / 1'000'000'000, left % 1'000'000'000};
    }
    epoll_event ready[64];
    const int count = epoll_pwait2(events, ready, 64, &wait, nullptr);
    for (int e = 0; e < count; ++e) {
      const std::size_t from = ready[e].data.u32;
      // A limited burst keeps one busy device from delaying due packets.
      for (int burst = 0; burst < 32; ++burst) {
        const ssize_t size = read(tun[from], buffer, sizeof buffer);
        if (size < 20) break;
        const std::size_t to = buffer[18]; // the third byte of the destination
        if (buffer[0] >> 4 != 4 || to >= delay_ns.size() || lost(draw)) continue;
        waiting.push(
            {now_ns() + delay_ns[from] + delay_ns[to], order++, from, {buffer, buffer + size}});
      }
    }
    while (!waiting.empty() && waiting.top().due_ns <= now_ns()) {
      const held& packet = waiting.top();
      if (write(tun[packet.from], packet.bytes.data(), packet.bytes.size()) < 0) ++refused;
      late_ns.push_back(now_ns() - packet.due_ns);
      waiting.pop();
    }
  }
  if (!late_ns.empty()) {
    std::sort(late_ns.begin(), late_ns.end());
    const auto at = [&](double share) {
      return 1e-3 * static_cast<double>(late_ns[static_cast<std::size_t>(
                        share * static_cast<double>(late_ns.size() - 1))]);
    };
    std::printf(
        "%zu packets, late by %.0f us (median), %.0f us (99 %%), %.0f us (most), %llu refused\n",
        late_ns.size(), at(0.5), at(0.99), at(1), static_cast<unsigned long long>(refused));
  }
}
