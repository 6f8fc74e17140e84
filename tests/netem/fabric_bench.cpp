// Measures messages per second through ports. There are 10,000 actors on 1,000 hosts, and each
// message is answered by the next. The run is repeated with an observer that hashes every delivered
// event. Usage: fabric_bench [actors] [hosts] [messages]
#include "kernels/base/digest.hpp"
#include "tests/netem/support/small_world.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

using namespace shoal;
using namespace shoal::netem;
using namespace shoal::netem::testing;
using namespace std::chrono_literals;

namespace {

double resident_mb() {
  std::ifstream in("/proc/self/statm");
  long all = 0, resident = 0;
  in >> all >> resident;
  return static_cast<double>(resident) * 4096 / 1e6;
}

void measure(std::size_t actors, std::size_t hosts, std::size_t messages, bool hashed,
             duration jitter) {
  small_world w;
  hasher hash;
  w.watch = [&](const delivered_event& event) {
    if (!hashed) return;
    std::byte bytes[64];
    std::size_t used = 0;
    auto put = [&](auto value) {
      std::memcpy(bytes + used, &value, sizeof value);
      used += sizeof value;
    };
    put(event.time.count()), put(event.kind), put(event.from.host), put(event.from.ordinal);
    put(event.to.host), put(event.to.ordinal), put(event.wire_bytes);
    hash.add(std::span<const std::byte>(bytes, used));
  };
  w.net->set_path(w.here, w.here, {20ms, jitter});
  auto before = resident_mb();
  std::vector<host_index> where;
  for (std::size_t i = 0; i < hosts; ++i) where.push_back(w.host(1e9));
  std::vector<caf::actor> all;
  std::size_t sent = 0;
  for (std::size_t i = 0; i < actors; ++i)
    all.push_back(w.spawn_public(where[i % hosts], [&, i](puppet& self) -> caf::behavior {
      return {[&, i](const note& x) {
        if (++sent > messages) return;
        self.send(all[(i + 1 + x.n % 97) % actors], note{x.n + 1});
      }};
    }));
  for (std::size_t i = 0; i < actors; ++i)
    w.does(where[i % hosts], [&, i](puppet& self) {
      self.send(all[i == 0 ? actors - 1 : i - 1], note{1}), self.quit();
    });
  auto start = std::clock(); // processor time: the run has one thread
  w.run();
  auto seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf(
      "%zu actors, %zu hosts, %s, jitter %s: %.0f messages/s, +%.0f MB (%.0f bytes/actor)\n",
      actors, hosts, hashed ? "hashed" : "not hashed", to_string(jitter).c_str(),
      static_cast<double>(sent) / seconds, resident_mb() - before,
      (resident_mb() - before) * 1e6 / static_cast<double>(actors));
  all.clear();
}

} // namespace

int main(int argc, char** argv) {
  auto number = [&](int i, std::size_t otherwise) {
    return i < argc ? static_cast<std::size_t>(std::atoll(argv[i])) : otherwise;
  };
  auto actors = number(1, 10'000), hosts = number(2, 1'000), messages = number(3, 1'000'000);
  for (auto jitter : {0ms, 5ms})
    for (bool hashed : {false, true}) measure(actors, hosts, messages, hashed, jitter);
}
