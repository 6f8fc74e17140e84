#include "netem/wire/io_loop.hpp"

#include "kernels/base/check.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>

namespace shoal::netem::wire {

namespace {

/// More loops than this gained nothing: one copies and encrypts about as much as a fast line takes.
constexpr unsigned most_loops = 4;

thread_local bool on_a_loop = false;

/// Names a socket, and tells it from earlier ones of the same number.
std::uint64_t key_of(int socket, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(socket);
}

} // namespace

io_loop& io_loop::next() {
  // The loops are never destroyed, since callbacks may run until the process ends.
  static const auto& loops = *new std::vector<io_loop*>([] {
    const auto count = std::clamp(std::thread::hardware_concurrency() / 2, 1u, most_loops);
    std::vector<io_loop*> out;
    for (unsigned i = 0; i < count; ++i) out.push_back(new io_loop);
    return out;
  }());
  static std::atomic<unsigned> turn{0};
  return *loops[turn++ % loops.size()];
}

bool io_loop::is_on_a_loop() noexcept {
  return on_a_loop;
}

io_loop::io_loop()
    : poll_(epoll_create1(EPOLL_CLOEXEC)), bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  SHOAL_CHECK(poll_.get() >= 0 && bell_.get() >= 0, "a process may open descriptors");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key_of(bell_.get(), 0);
  SHOAL_CHECK(epoll_ctl(poll_.get(), EPOLL_CTL_ADD, bell_.get(), &event) == 0,
              "a loop hears its bell");
  // Signals are for the other threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void io_loop::post(std::function<void()> work) {
  bool sleeps = false;
  {
    std::lock_guard guard(mutex_);
    posted_.push_back(std::move(work));
    sleeps = !std::exchange(awake_, true);
  }
  const std::uint64_t one = 1;
  if (sleeps && ::write(bell_.get(), &one, sizeof(one)) != sizeof(one)) std::abort();
}

void io_loop::watch(int socket, std::uint32_t events, const std::shared_ptr<io_client>& who) {
  auto& entry = watched_[socket];
  if (entry.who == who && entry.events == events) return;
  if (!entry.who) entry.generation = ++generation_;
  epoll_event event{};
  event.events = events;
  event.data.u64 = key_of(socket, entry.generation);
  // epoll always reports failures, so a socket that nobody looks at must not be in its list.
  const int change = events == 0         ? EPOLL_CTL_DEL
                     : entry.events == 0 ? EPOLL_CTL_ADD
                                         : EPOLL_CTL_MOD;
  SHOAL_CHECK((events == 0 && entry.events == 0) ||
                  epoll_ctl(poll_.get(), change, socket, &event) == 0,
              "an open socket can be watched");
  entry.events = events;
  entry.who = who;
}

void io_loop::forget(int socket) {
  const auto found = watched_.find(socket);
  if (found == watched_.end()) return;
  if (found->second.events != 0) epoll_ctl(poll_.get(), EPOLL_CTL_DEL, socket, nullptr);
  // The destructor may call this object.
  const auto gone = std::move(found->second.who);
  watched_.erase(found);
}

void io_loop::at(clock::time_point when, std::function<void()> work) {
  timers_.emplace(when, std::move(work));
}

void io_loop::do_posted() {
  std::vector<std::function<void()>> now;
  {
    std::lock_guard guard(mutex_);
    now.swap(posted_);
  }
  for (auto& each : now) std::exchange(each, nullptr)();
}

void io_loop::run() {
  on_a_loop = true;
  std::array<epoll_event, 64> events;
  for (;;) {
    int wait = -1;
    if (!timers_.empty())
      wait = static_cast<int>(std::clamp<std::int64_t>(
          std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first - clock::now())
              .count(),
          0, 60'000));
    {
      std::lock_guard guard(mutex_);
      if (!posted_.empty())
        wait = 0;
      else
        awake_ = false;
    }
    const int count = epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), wait);
    {
      std::lock_guard guard(mutex_);
      awake_ = true;
    }
    do_posted();
    for (int i = 0; i < count; ++i) {
      const auto key = events[static_cast<std::size_t>(i)].data.u64;
      const auto socket = static_cast<int>(key & 0xffffffffU);
      if (socket == bell_.get()) {
        std::uint64_t rung = 0;
        [[maybe_unused]] const auto got = ::read(bell_.get(), &rung, sizeof(rung));
        continue;
      }
      // The work before may have closed the socket, and another one may have its number now.
      if (const auto found = watched_.find(socket);
          found != watched_.end() && key_of(socket, found->second.generation) == key)
        std::shared_ptr(found->second.who)->ready();
    }
    while (!timers_.empty() && timers_.begin()->first <= clock::now())
      timers_.extract(timers_.begin()).mapped()();
  }
}

} // namespace shoal::netem::wire
