// Two rounds of one group, as in PowerSGD: the second one is made from the mean of the first.
// Members die in either round. All survivors end, and all successful ones hold the same bits of
// both rounds.
#include "actors/averaging/group.hpp"
#include "actors/averaging/observations.hpp"
#include "actors/dht/messages.hpp"
#include "actors/probes.hpp"
#include "tests/actors/support/mini_world.hpp"
#include "tests/actors/support/rosters.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

using owner_log = collector<round_report>;
using directory_log = collector<store>;

constexpr std::uint64_t first_count = 61, second_count = 37;

/// The contribution of member `id` to the second round.
payload second_of(peer_id id, const payload& mean) {
  std::vector<float> out(second_count);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(id) * static_cast<float>(i) / 3 +
             (mean.empty() ? 0 : mean.floats()[i % first_count]);
  return payload{std::move(out)};
}

struct fixture {
  struct member {
    mini_host* host;
    caf::actor group;
    std::shared_ptr<owner_log::log> reports;
  };

  mini_world world;
  caf::actor directory;
  std::vector<member> members;

  fixture() {
    directory = world.spawn<directory_log>(world.add_host("directory"),
                                           std::make_shared<directory_log::log>());
  }

  void add(std::uint64_t weight, bool takes = true, bool finite = true) {
    auto& host = world.add_host(fmt::format("m-{}", members.size()));
    const auto id = host.id();
    round_request request;
    request.epoch = 7;
    std::vector<float> values(first_count);
    if (weight > 0)
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(id * 7 + i);
    if (!finite) values[3] = std::numeric_limits<float>::quiet_NaN();
    request.values = payload{std::move(values)};
    request.weight = weight;
    if (weight > 0) request.samples = {{id * 100, static_cast<std::uint32_t>(weight)}};
    request.takes = takes;
    request.must_be_finite = true;
    request.second.value_count = second_count;
    request.second.values = [id, weight](const payload& mean) {
      return weight > 0 ? second_of(id, mean) : payload{std::vector<float>(second_count)};
    };
    request.rate_up = request.rate_down = 1'000'000;
    request.known_samples = 1;
    request.dht = directory;
    averaging_config config;
    config.poll_interval = 1h;
    config.chunk_bytes = 32;
    config.window_chunks = 2;
    auto log = std::make_shared<owner_log::log>();
    auto owner = world.spawn<owner_log>(host, log);
    members.push_back(
        {&host, world.spawn<group_actor>(host, owner, config, std::move(request)), log});
  }

  /// Runs matchmaking and both rounds.
  void run() {
    world.settle();
    found answer;
    const auto deadline = mini_world::utc_start_ns +
                          (world.now() + duration(averaging_config{}.matchmaking_time)).count();
    for (const auto& one : members)
      answer.records.push_back(record{fmt::format("{:016x}", one.host->id()), one.group,
                                      matchmaking::bid{deadline, true}.pack(), 0});
    for (std::size_t m = members.size(); m-- > 0;) world.send(members[m].group, answer);
    world.settle();
  }

  std::vector<round_report> reports(std::size_t member) const {
    return std::get<std::vector<round_report>>(*members[member].reports);
  }
  bool gone(std::size_t member) const {
    return caf::actor_cast<caf::strong_actor_ptr>(members[member].group)
        ->get()
        ->getf(caf::abstract_actor::is_terminated_flag);
  }

  /// Describes errors: different bits, or a mean that does not match its senders.
  std::vector<std::string> errors() const {
    std::vector<std::string> out;
    std::map<group_id, std::map<std::uint32_t, contributed>> given;
    std::map<group_id, round_ended> first;
    for (const auto& [who, what] : world.observed<misbehaved>())
      out.push_back(fmt::format("{} says of {}: {}", who, what.culprit, what.why));
    for (const auto& [who, what] : world.observed<contributed>())
      given[what.group][what.member] = what;
    for (const auto& [who, what] : world.observed<round_ended>()) {
      if (what.values.empty()) continue;
      const auto [known, fresh] = first.emplace(what.group, what);
      if (!std::ranges::equal(known->second.values.bytes(), what.values.bytes()))
        out.push_back(fmt::format("{} has other bits", who));
      if (!fresh) continue;
      for (const auto& part : what.parts)
        for (auto j = part.begin; j < part.end; ++j) {
          double sum = 0, weight = 0;
          for (auto sender : part.senders) {
            const auto& one = given.at(what.group).at(sender);
            sum += static_cast<double>(one.weight) * one.values.floats()[j];
            weight += static_cast<double>(one.weight);
          }
          if (std::abs(sum / weight - what.values.floats()[j]) > 1e-3 ||
              weight != static_cast<double>(part.weight))
            out.push_back(fmt::format("value {} is not the mean of its senders", j));
        }
    }
    const round_result* whole = nullptr;
    for (std::size_t m = 0; m < members.size(); ++m) {
      const auto got = reports(m);
      if (members[m].host->alive() && got.size() != 1)
        out.push_back(fmt::format("member {} has {} reports", m, got.size()));
      if (members[m].host->alive() && !gone(m))
        out.push_back(fmt::format("member {} stays for ever", m));
      for (const auto& report : got) {
        const auto& result = *report.result;
        if (!result.succeeded() || result.values.empty()) continue;
        if (whole == nullptr) whole = &result;
        if (result.values.size() != 4 * (first_count + second_count))
          out.push_back(fmt::format("member {} has not the values of both rounds", m));
        if (result.group != whole->group ||
            !std::ranges::equal(result.values.bytes(), whole->values.bytes()))
          out.push_back(fmt::format("member {} has other bits of both", m));
      }
    }
    return out;
  }
};

} // namespace

TEST_CASE("two rounds: the second has the same members, starts from the first mean, and is "
          "reported with it") {
  fixture f;
  for (std::uint64_t weight : {3, 4, 5}) f.add(weight);
  f.run();
  for (const auto& error : f.errors()) FAIL_CHECK(error);
  CHECK(f.world.now() < 1ms);
  const auto ended = f.world.observed<round_ended>();
  REQUIRE(ended.size() == 6);
  for (std::size_t m = 0; m < 3; ++m) {
    REQUIRE(f.reports(m).size() == 1);
    const auto& result = *f.reports(m)[0].result;
    CHECK(result.outcome == outcome::ok);
    for (std::size_t j = 0; j < second_count; ++j) {
      double expected = 0;
      for (peer_id id : {2, 3, 4})
        expected += static_cast<double>(id + 1) *
                    second_of(id, result.values.slice(0, 4 * first_count)).floats()[j] / 12;
      CHECK(result.values.floats()[first_count + j] == doctest::Approx(expected));
    }
    CHECK(result.parts.back().end == second_count);
  }
  // Samples are those of the second round only.
  std::set<group_id> groups;
  for (const auto& [who, what] : f.world.observed<contributed>()) {
    groups.insert(what.group);
    CHECK(what.samples.empty() == what.first_of_two);
    CHECK((what.group == f.reports(0)[0].result->group) != what.first_of_two);
  }
  CHECK(groups.size() == 2);
}

TEST_CASE("two rounds: members that only want the result, or only reduce, are in both") {
  fixture f;
  f.add(3);
  f.add(0);
  f.add(0, false);
  f.add(4);
  f.run();
  for (const auto& error : f.errors()) FAIL_CHECK(error);
  for (std::size_t m = 0; m < 4; ++m) {
    REQUIRE(f.reports(m).size() == 1);
    CHECK(f.reports(m)[0].result->outcome == outcome::ok);
    CHECK(f.reports(m)[0].result->values.empty() == (m == 2));
  }
}

TEST_CASE(
    "two rounds: all survivors end with the same bits, whichever member dies at which point") {
  const std::string_view points[] = {
      probes::group_begun,  probes::first_part_sent, probes::half_sent,    probes::first_reduced,
      probes::half_replied, probes::voted,           probes::before_commit};
  std::map<std::string, std::uint64_t> ends;
  std::uint64_t runs = 0, in_second = 0;
  for (std::size_t size : {2, 3, 4})
    for (std::size_t who = 0; who < size; ++who)
      for (const auto point : points)
        for (unsigned nth : {1, 2}) {
          fixture f;
          for (std::size_t m = 0; m < size; ++m) f.add(m + 1);
          unsigned reached = 0;
          f.world.on_probe = [&](mini_host& host, std::string_view at) {
            if (&host == f.members[who].host && at == point && ++reached == nth) host.kill();
          };
          f.run();
          if (reached < nth) continue; // the member never got there
          f.world.run_for(10min);
          ++runs;
          in_second += nth == 2 ? 1 : 0;
          std::string outcomes;
          for (std::size_t m = 0; m < size; ++m)
            outcomes += !f.members[m].host->alive() ? '-'
                        : f.reports(m).empty()
                            ? '?'
                            : "opsf"[static_cast<std::size_t>(f.reports(m)[0].result->outcome)];
          for (const auto& error : f.errors())
            FAIL_CHECK(fmt::format("{} of {} dies at {}, time {}: {} ({})", who, size, point, nth,
                                   error, outcomes));
          ++ends[outcomes.find('f') == std::string::npos
                     ? (outcomes.find('p') == std::string::npos ? "ok" : "partial")
                     : "failed"];
        }
  MESSAGE(fmt::format("{} deaths, {} in the second round: ok {}, partial {}, failed {}", runs,
                      in_second, ends["ok"], ends["partial"], ends["failed"]));
  CHECK(in_second > 30);
  CHECK(ends["ok"] > 0);
  CHECK(ends["partial"] > 0);
}

TEST_CASE("two rounds: a member whose first round fails is in no second round, and no member waits "
          "for it") {
  fixture f;
  f.add(3);
  f.add(4, true, false); // with a value that is not finite
  f.add(5);
  f.add(6);
  f.run();
  CHECK(f.world.now() < 1ms);
  REQUIRE(f.reports(1).size() == 1);
  CHECK(f.reports(1)[0].result->reason == reason::not_finite);
  for (std::size_t m : {0, 2, 3}) {
    REQUIRE(f.reports(m).size() == 1);
    CHECK(f.reports(m)[0].result->outcome == outcome::partial);
    for (const auto& part : f.reports(m)[0].result->parts) CHECK(part.weight == 14);
  }
  f.world.run_for(1min);
  for (const auto& error : f.errors()) FAIL_CHECK(error);
}

TEST_CASE("two rounds: a group without parts for the second round is not begun") {
  fixture f;
  f.add(3);
  auto log = std::make_shared<collector<join_request>::log>();
  auto& host = f.world.add_host("leader");
  auto leader = f.world.spawn<collector<join_request>>(host, log);
  f.world.settle();
  found answer;
  answer.records.push_back(record{fmt::format("{:016x}", host.id()), leader,
                                  matchmaking::bid{mini_world::utc_start_ns, true}.pack(), 0});
  f.world.send(f.members[0].group, answer);
  f.world.settle();
  REQUIRE(std::get<std::vector<join_request>>(*log).size() == 1);
  const auto asked = std::get<std::vector<join_request>>(*log)[0];
  CHECK(asked.value_count == first_count + second_count);
  group_begun group;
  group.epoch = 7;
  group.value_count = asked.value_count;
  group.chunk_bytes = 32;
  member_info us;
  us.peer = host.id();
  us.address = leader;
  us.weight = us.rate_up = us.rate_down = 1;
  group.members = {asked.member, us};
  caf::send_as(leader, f.members[0].group, sealed(group, {f.members[0].host, &host}, 1));
  f.world.settle();
  REQUIRE(f.reports(0).size() == 1);
  CHECK(f.reports(0)[0].result->reason == reason::bad_message);
}
