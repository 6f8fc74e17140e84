// Group actors of one Byzantine-tolerant round, whose owners know every member's true contribution.
// A test gives members an attack, runs the round, and sees who is convicted.
#pragma once

#include "actors/averaging/group.hpp"
#include "actors/averaging/guard_observations.hpp"
#include "actors/conduct/conducts.hpp"
#include "actors/dht/messages.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/abstract_actor.hpp>
#include <caf/actor_cast.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shoal::actors::testing {

/// The true contributions, by their first sample.
using truth_table = std::map<std::uint64_t, payload>;

/// A training peer that computes at once what its group actor asks for.
class computing_owner : public caf::event_based_actor {
public:
  struct log {
    std::vector<round_report> reports;
    std::vector<duty_missed> missed;
    std::uint64_t computed = 0;
  };
  computing_owner(caf::actor_config& config, host&, std::shared_ptr<log> into,
                  std::shared_ptr<const truth_table> truth)
      : caf::event_based_actor(config), into_(std::move(into)), truth_(std::move(truth)) {
    set_default_handler(caf::drop);
  }
  void on_exit() override { into_.reset(); }

protected:
  caf::behavior make_behavior() override {
    return {[this](const round_report& m) { into_->reports.push_back(m); },
            [this](const duty_missed& m) { into_->missed.push_back(m); },
            [this](const audit_duty& m) {
              ++into_->computed;
              const auto found = truth_->find(m.what->blocks.front().first);
              audit_done out{m.what->group, m.what->target, found != truth_->end(), {}};
              if (out.computed) out.values = found->second;
              send(caf::actor_cast<caf::actor>(current_sender()), std::move(out));
            }};
  }

private:
  std::shared_ptr<log> into_;
  std::shared_ptr<const truth_table> truth_;
};

struct guarded_rounds {
  struct member {
    mini_host* host = nullptr;
    caf::actor group;
    std::shared_ptr<computing_owner::log> log;
  };

  mini_world world;
  averaging_config config; ///< applies to members that are added later
  round_codecs codecs;
  guard_options guard;
  bool guarded = true;
  caf::actor directory;
  std::vector<member> members;
  std::shared_ptr<truth_table> truth = std::make_shared<truth_table>();

  explicit guarded_rounds(std::uint64_t seed = 1) : world(seed) {
    directory = world.spawn<collector<store>>(world.add_host("directory"),
                                              std::make_shared<collector<store>::log>());
    config.poll_interval = std::chrono::hours(1);
    config.chunk_bytes = 16;
    config.window_chunks = 2;
  }

  /// A member with this contribution; an empty payload: it only wants the result.
  void add(std::uint64_t weight, payload values, const conduct_options& conduct = {}) {
    auto& host = world.add_host(fmt::format("m-{}", members.size()));
    auto options = config;
    if (guarded) options.guard = std::make_shared<const guard_options>(guard);
    options.conduct = make_conduct(conduct, host);
    round_request request;
    request.epoch = 7;
    request.values = values;
    request.weight = weight;
    const auto first = host.id() * 1000;
    if (weight > 0) {
      request.samples = {{first, static_cast<std::uint32_t>(weight)}};
      // Two blocks, in another order than the samples.
      if (weight > 1)
        request.blocks = {{first + 1, static_cast<std::uint32_t>(weight - 1)}, {first, 1}};
      truth->emplace(request.blocks.empty() ? first : first + 1, values);
    }
    request.rate_up = request.rate_down = 1'000'000;
    request.known_samples = 1;
    request.codecs = codecs;
    request.dht = directory;
    auto log = std::make_shared<computing_owner::log>();
    auto owner = world.spawn<computing_owner>(host, log, truth);
    members.push_back(
        {&host, world.spawn<group_actor>(host, owner, options, std::move(request)), log});
  }
  /// The same with random values.
  void add_random(std::uint64_t weight, std::size_t count, const conduct_options& conduct = {}) {
    auto draws = stream(world.seed(), "guarded.values", members.size());
    std::vector<float> values(count);
    for (auto& x : values) x = static_cast<float>(draws.normal());
    add(weight, payload{std::move(values)}, conduct);
  }

  void begin() {
    world.settle();
    found answer;
    const auto deadline =
        mini_world::utc_start_ns + (world.now() + duration(config.matchmaking_time)).count();
    for (const auto& one : members)
      answer.records.push_back(record{fmt::format("{:016x}", one.host->id()), one.group,
                                      matchmaking::bid{deadline, true}.pack(), 0});
    for (std::size_t m = members.size(); m-- > 0;)
      if (members[m].host->alive()) world.send(members[m].group, answer);
    world.settle();
  }
  void run() {
    begin();
    world.run_for(std::chrono::minutes(20));
  }

  const round_result& result(std::size_t member) const {
    const auto& reports = members[member].log->reports;
    REQUIRE(reports.size() == 1);
    return *reports.front().result;
  }
  /// The members that some member has convicted, with a verdict or with a contradiction.
  std::set<std::size_t> convicted() const {
    std::set<std::size_t> out;
    for (const auto& [who, what] : world.observed<case_decided>()) out.insert(what.culprit);
    for (const auto& [who, what] : world.observed<contradiction_found>()) out.insert(what.culprit);
    return out;
  }
  /// The number of members that hold a verdict against this one.
  std::size_t verdicts_against(std::size_t member) const {
    std::set<peer_id> by;
    for (const auto& [who, what] : world.observed<case_decided>())
      if (what.culprit == member) by.insert(who);
    return by.size();
  }
  /// The members that have failed a duty in the eyes of another.
  std::set<std::size_t> failed() const {
    std::set<std::size_t> out;
    for (const auto& [who, what] : world.observed<duty_failed>()) out.insert(what.member);
    return out;
  }
  bool group_actors_have_ended() const {
    return std::all_of(members.begin(), members.end(), [](const member& one) {
      return !one.host->alive() || caf::actor_cast<caf::abstract_actor*>(one.group)->getf(
                                       caf::abstract_actor::is_terminated_flag);
    });
  }
};

} // namespace shoal::actors::testing
