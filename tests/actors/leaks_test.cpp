// Aborted rounds leave nothing behind. After 10,000 of them, aborted in every way, there are as
// many actors and as much memory as after ten.
#include "actors/averaging/group.hpp"
#include "actors/averaging/observations.hpp"
#include "actors/dht/messages.hpp"
#include "actors/probes.hpp"
#include "tests/actors/support/mini_world.hpp"
#include "tests/support/skip.hpp"

#include <caf/actor_registry.hpp>
#include <caf/send.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <malloc.h>

#include <thread>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

/// Takes every message and keeps none. It plays the directory, owners, and silent members.
class sink : public caf::event_based_actor {
public:
  sink(caf::actor_config& config, host&) : caf::event_based_actor(config) {
    set_default_handler(caf::drop);
  }
  caf::behavior make_behavior() override {
    return {[](const tick&) {}};
  }
};

struct abortions {
  static constexpr std::size_t members = 4;
  mini_world world;
  std::vector<mini_host*> hosts;
  caf::actor directory, owner, ghost;
  std::map<std::string, std::uint64_t> outcomes;
  std::vector<std::pair<mini_host*, caf::actor_addr>> group;

  abortions() {
    auto& other = world.add_host("other");
    directory = world.spawn<sink>(other);
    owner = world.spawn<sink>(other);
    ghost = world.spawn<sink>(other);
    for (std::size_t m = 0; m < members; ++m)
      hosts.push_back(&world.add_host(fmt::format("m-{}", m)));
  }

  void kill(std::size_t member) {
    if (auto who = caf::actor_cast<caf::actor>(group[member].second))
      caf::anon_send_exit(who, caf::exit_reason::kill);
  }

  /// Aborts one round in the `how`-th way.
  void run(std::uint64_t how) {
    std::vector<caf::actor> now;
    group.clear();
    averaging_config config;
    config.chunk_bytes = 32;
    config.poll_interval = 1h;
    round_request request;
    request.epoch = 7;
    request.values = payload{std::vector<float>(60, 1.0f)};
    request.rate_up = request.rate_down = 1'000'000;
    request.known_samples = 1;
    request.dht = directory;
    for (auto* on : hosts) {
      request.weight = on->id();
      request.samples = {{on->id() * 100, static_cast<std::uint32_t>(on->id())}};
      now.push_back(caf::actor_cast<caf::actor>(world.system().spawn<group_actor>(
          std::ref(static_cast<host&>(*on)), owner, config, request)));
      group.emplace_back(on, caf::actor_cast<caf::actor_addr>(now.back()));
    }
    std::uint64_t reached = 0;
    const std::string_view at = how == 1   ? probes::first_part_sent
                                : how == 2 ? probes::half_sent
                                : how == 3 ? probes::first_reduced
                                           : probes::group_begun;
    world.on_probe = [&](mini_host&, std::string_view point) {
      if (how >= 1 && how <= 4 && point == at && ++reached == 1)
        // One member is left, which is no majority.
        for (std::size_t m = 1; m < members; ++m) kill(m);
    };
    world.settle();
    found ready;
    const auto bid = matchmaking::bid{hosts[0]->utc_ns() + config.matchmaking_time.count(), true}
                         // All begin at once.
                         .pack();
    for (std::size_t m = 0; m < members; ++m)
      ready.records.push_back(record{fmt::format("{:016x}", hosts[m]->id()), now[m], bid, 0});
    if (how == 5)
      ready.records.push_back(
          // A leader that never answers.
          record{fmt::format("{:016x}", 1), ghost, bid, 0});
    if (how != 6)
      for (std::size_t m = 0; m < members; ++m) world.send(now[m], ready);
    // The round is cancelled while its members look for each other.
    if (how == 6) {
      world.run_for(1s);
      for (const auto& one : now) world.send(one, tick{group_actor::cancel, 0});
    }
    if (how == 7)
      world.send(now[0], part_chunk{id128{9, 9}, 0, 0, 0, payload{std::vector<float>(3)}});
    now.clear();
    ready = {};
    // All members at once.
    if (how == 7)
      for (std::size_t m = 0; m < members; ++m) kill(m);
    world.run_for(400s);
    for (const auto& [who, what] : world.observed<round_ended>())
      ++outcomes[fmt::format("{} {}", to_string(what.outcome), to_string(what.reason))];
    world.observations.clear();
    world.observations.shrink_to_fit();
  }

  std::size_t actors() { return world.system().registry().running(); }
};

std::size_t in_use() {
  return mallinfo2().uordblks;
  // 0 under sanitizers.
}

/// Runs on a thread of its own: memory freed into a thread's cache counts as in use until the
/// thread ends.
template <class F>
void without_cache(F work) {
  std::thread(work).join();
}

void check_no_leaks(std::uint64_t rounds) {
  {
    // Objects that the process and the libraries make once and keep.
    abortions first;
    without_cache([&] {
      for (std::uint64_t i = 0; i < 100; ++i) first.run(1 + i % 7);
    });
  }
  abortions all;
  std::uint64_t done = 0;
  auto until = [&](std::uint64_t count) {
    without_cache([&] {
      for (; done < count; ++done) all.run(1 + done % 7);
    });
    return std::pair{all.actors(), in_use()};
  };
  const auto [actors_before, bytes_before] = until(10);
  const auto [actors_after, bytes_after] = until(rounds);
  std::string text;
  for (const auto& [name, count] : all.outcomes) text += fmt::format(", {} {}", count, name);
  MESSAGE(std::string(
      fmt::format("after 10 rounds {} actors, {} bytes; after {} rounds {} actors, {} bytes{}",
                  actors_before, bytes_before, rounds, actors_after, bytes_after, text)));
  CHECK(all.outcomes["ok none"] == 0);
  CHECK(actors_after == actors_before);
  CHECK(static_cast<double>(bytes_after) <= 1.01 * static_cast<double>(bytes_before));
}

} // namespace

TEST_CASE("a thousand aborted rounds leave no actor and no memory") {
  check_no_leaks(1000);
}

TEST_CASE("ten thousand aborted rounds leave no actor and no memory") {
  SHOAL_NIGHTLY();
  check_no_leaks(10'000);
}
