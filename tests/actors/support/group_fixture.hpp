// Group actors that find each other at once and run one round. A test may kill a member at a named
// point of the protocol.
#pragma once

#include "actors/averaging/group.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

namespace shoal::actors::testing {

struct group_fixture {
  using report_log = collector<round_report>;
  using directory_log = collector<store>;
  struct member {
    mini_host* host;
    caf::actor group;
    std::shared_ptr<report_log::log> reports;
  };

  mini_world world;
  averaging_config config; ///< applies to members that are added later
  caf::actor directory;
  std::vector<member> members;

  group_fixture() {
    directory = world.spawn<directory_log>(world.add_host("directory"),
                                           std::make_shared<directory_log::log>());
    config.poll_interval = std::chrono::hours(1);
    config.chunk_bytes = 16;
    config.window_chunks = 2;
  }

  void add(std::uint64_t weight, std::vector<float> values) {
    auto& host = world.add_host(fmt::format("m-{}", members.size()));
    round_request request;
    request.epoch = 7;
    request.values = payload{std::move(values)};
    request.weight = weight;
    request.samples = {{host.id() * 100, static_cast<std::uint32_t>(weight)}};
    request.rate_up = request.rate_down = 1'000'000;
    request.known_samples = 1;
    request.dht = directory;
    auto log = std::make_shared<report_log::log>();
    auto owner = world.spawn<report_log>(host, log);
    members.push_back(
        {&host, world.spawn<group_actor>(host, owner, config, std::move(request)), log});
  }

  /// Empty if no member dies.
  void kill_at(std::size_t member, std::string_view point) {
    if (point.empty()) return;
    world.on_probe = [this, member, point](mini_host& host, std::string_view at) {
      if (&host == members[member].host && at == point) host.kill();
    };
  }

  void run() {
    world.settle();
    found answer;
    const auto deadline =
        mini_world::utc_start_ns + (world.now() + duration(config.matchmaking_time)).count();
    for (const auto& one : members)
      answer.records.push_back(record{fmt::format("{:016x}", one.host->id()), one.group,
                                      matchmaking::bid{deadline, true}.pack(), 0});
    for (std::size_t m = members.size(); m-- > 0;) world.send(members[m].group, answer);
    world.settle();
    world.run_for(std::chrono::minutes(5));
  }

  const round_result& result(std::size_t member) const {
    const auto& reports = std::get<std::vector<round_report>>(*members[member].reports);
    REQUIRE(reports.size() == 1);
    return *reports.front().result;
  }
};

} // namespace shoal::actors::testing
