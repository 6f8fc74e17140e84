// The limits of a listening socket that a stranger could exhaust: descriptors and open streams.
#include "netem/wire/listener.hpp"
#include "tests/cluster/support/attacker.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

using namespace shoal;
using namespace shoal::cluster;
using namespace shoal::netem::wire;

namespace {

listener_options without_keys() {
  listener_options out;
  out.at = {"127.0.0.1", 0};
  out.timeout = std::chrono::seconds(1);
  out.on_pipe = [](std::shared_ptr<netem::wire::pipe> made) {
    made->start([](payload) {}, [](const std::string&) {});
  };
  return out;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

} // namespace

TEST_CASE(
    "a listener without descriptors rests between its attempts and goes on when it has some") {
  const auto opened = listener::open(without_keys());
  REQUIRE(opened.ok());
  constexpr std::size_t count = 20;
  std::vector<int> clients, fillers;
  for (std::size_t i = 0; i < count; ++i)
    clients.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  auto few = before;
  few.rlim_cur = static_cast<rlim_t>(clients.back()) + 1;
  setrlimit(RLIMIT_NOFILE, &few);
  for (int filler; (filler = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
    fillers.push_back(filler);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons((*opened)->at().port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (const int each : clients)
    CHECK(connect(each, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  const auto used = cpu_seconds();
  std::this_thread::sleep_for(1s); // the time in which a spinning thread would show
  const auto spent = cpu_seconds() - used;
  for (const int each : fillers) close(each);
  setrlimit(RLIMIT_NOFILE, &before);
  MESSAGE(spent << " s of computing in a second without descriptors");
  CHECK(spent < 0.5);
  CHECK(wait_until([&] { return (*opened)->refused().silent >= count; }));
  for (const int each : clients) close(each);
}

TEST_CASE("the open streams of one address are limited and those that end make room") {
  auto options = without_keys();
  options.most_streams_from_one = 4;
  const auto opened = listener::open(std::move(options));
  REQUIRE(opened.ok());
  std::vector<std::shared_ptr<netem::wire::pipe>> pipes;
  std::atomic<int> closed{0};
  const auto dial = [&] {
    pipes.push_back(open_pipe((*opened)->at().text(), "control", nullptr, {}));
    pipes.back()->start([](payload) {}, [&](const std::string&) { ++closed; });
    pipes.back()->send(frame{{'x'}, {}});
  };
  for (int i = 0; i < 6; ++i) dial();
  CHECK(wait_until([&] { return closed == 2 && (*opened)->refused().too_many == 2; }));
  for (const auto& each : pipes) each->close();
  CHECK(wait_until([&] { return closed == 6; }));
  const auto refused = (*opened)->refused().too_many;
  CHECK(wait_until([&] {
    const auto before = closed.load();
    dial();
    return !wait_until([&] { return closed > before; }, 300ms);
  }));
  CHECK((*opened)->refused().too_many <= refused + 20);
  for (const auto& each : pipes) each->close();
  CHECK(wait_until([&] { return closed == static_cast<int>(pipes.size()); }));
}

TEST_CASE("streams that are closed while they connect leave no connection behind") {
  const auto opened = listener::open(without_keys());
  REQUIRE(opened.ok());
  const auto descriptors = [] {
    std::size_t out = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
      ++out;
    return out;
  };
  std::atomic<int> closed{0};
  // Each stream is closed at another moment of its connection's beginning.
  const auto dial = [&](std::chrono::microseconds lives) {
    const auto made = open_pipe((*opened)->at().text(), "control", nullptr, {});
    made->start([](payload) {}, [&](const std::string&) { ++closed; });
    std::this_thread::sleep_for(lives);
    made->close();
  };
  dial(10ms);
  CHECK(wait_until([&] { return closed == 1; }));
  const auto before = descriptors();
  constexpr int tries = 300;
  for (int i = 0; i < tries; ++i) dial(std::chrono::microseconds(20 * (i % 100)));
  CHECK(wait_until([&] { return closed == tries + 1; }));
  // Each new stream drops the connections of earlier ones.
  const bool all = wait_until([&] {
    dial(10ms);
    return descriptors() <= before + 8;
  });
  CHECK_MESSAGE(all, fmt::format("{} descriptors, {} before", descriptors(), before));
}
