// Peers that average parameters, in a world without delay.
#include "actors/data/data_shard.hpp"
#include "actors/data/messages.hpp"
#include "actors/data/observations.hpp"
#include "actors/dht/dht_node.hpp"
#include "actors/training/moshpit_peer.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/interval_map.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

struct numbers final : sample_source {
  std::uint32_t sample_bytes() const override { return 4; }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    std::fill(out.begin(), out.end(), static_cast<std::byte>(index));
  }
  bool is_size_only() const override { return false; }
};

/// Each step adds one to each parameter. The step after `good` makes the parameters NaN.
class counting_work final : public workload {
public:
  struct seen {
    std::size_t steps = 0, from_nan = 0;
  };
  counting_work(std::size_t good, std::shared_ptr<seen> into)
      : good_(good), seen_(std::move(into)) {}

  std::uint64_t value_count() const override { return 4; }
  std::uint64_t sample_bytes() const override { return 4; }
  model_state initial() const override {
    model_state out;
    out.parameters = payload{std::vector<float>(4)};
    return out;
  }
  double accumulate(const model_state&, std::span<const std::byte>, std::uint64_t,
                    std::span<double>) const override {
    return 0;
  }
  model_state step(const model_state& at, const payload&) const override {
    auto out = at;
    const auto before = at.parameters.floats();
    if (!std::isfinite(before[0])) ++seen_->from_nan;
    std::vector<float> after(before.begin(), before.end());
    for (auto& each : after)
      each = seen_->steps == good_ ? std::numeric_limits<float>::quiet_NaN() : each + 1;
    ++seen_->steps;
    out.parameters = payload{std::move(after)};
    ++out.step;
    return out;
  }

private:
  const std::size_t good_;
  std::shared_ptr<seen> seen_;
};

} // namespace

TEST_CASE(
    "a peer whose own parameters become NaN goes back to the last average and takes part again") {
  mini_world world;
  auto& home = world.add_host("shard");
  const auto first = world.spawn<dht_node>(home, dht_config{});
  data_shard_config data;
  data.dht = first;
  world.spawn<data_shard>(home, data, std::make_shared<numbers>(),
                          std::make_shared<sample_ledger>(data.lease_time));
  std::vector<std::shared_ptr<counting_work::seen>> seen;
  std::vector<peer_id> ids;
  for (const std::size_t good :
       {std::size_t{21}, std::size_t{1'000'000'000}, std::size_t{1'000'000'000}}) {
    auto& host = world.add_host("trainer-" + std::to_string(ids.size())); // a member of its own
    dht_config dht;
    dht.bootstraps = {first};
    const auto node = world.spawn<dht_node>(host, dht);
    peer_config options;
    moshpit_options how;
    how.local_steps = 4;
    how.grid = {3, 1};
    options.device.samples_per_second = 16;
    options.averaging.matchmaking_time = 1s;
    seen.push_back(std::make_shared<counting_work::seen>());
    world.spawn<moshpit_peer>(
        host, options, how,
        std::make_shared<state_pool>(std::make_shared<counting_work>(good, seen.back())), node);
    ids.push_back(host.id());
  }
  world.run_for(3min);
  CHECK(seen[0]->steps > 60);
  // Until the next round, or the round after it if the NaN appeared while one was under way.
  CHECK(seen[0]->from_nan > 0);
  CHECK(seen[0]->from_nan <= 30);
  CHECK(seen[1]->from_nan + seen[2]->from_nan == 0);
  std::vector<std::size_t> averages(ids.size());
  for (const auto& [who, what] : world.observed<stepped>())
    for (std::size_t i = 0; i < ids.size(); ++i) averages[i] += who == ids[i] ? 1 : 0;
  CHECK(averages[0] + 5 >= averages[1]);
  CHECK(averages[1] > 10);
  CHECK(world.observed<misbehaved>().empty());
}

TEST_CASE("a peer that loses the lease of computed samples and gets it back computes them once") {
  mini_world world;
  auto& home = world.add_host("shard");
  auto& host = world.add_host("trainer");
  auto& member = world.add_host("another member");
  const auto first = world.spawn<dht_node>(home, dht_config{});
  data_shard_config data;
  data.dht = first;
  const auto ledger = std::make_shared<sample_ledger>(data.lease_time);
  const auto shard = world.spawn<data_shard>(home, data, std::make_shared<numbers>(), ledger);
  dht_config dht;
  dht.bootstraps = {first};
  peer_config options;
  moshpit_options how;
  how.local_steps = 40;
  how.grid = {3, 1};
  options.device.samples_per_second = 16;
  options.averaging.matchmaking_time = 1s;
  world.spawn<moshpit_peer>(host, options, how,
                            std::make_shared<state_pool>(std::make_shared<counting_work>(
                                1'000'000'000, std::make_shared<counting_work::seen>())),
                            world.spawn<dht_node>(host, dht));
  world.run_for(10s);
  // A member says of its round that no part has the peer's parameters, so the shard takes the
  // samples back. No other peer asks for samples.
  const std::vector<sample_range> lost{{0, 40}};
  const auto log = std::make_shared<collector<commit_received>::log>();
  caf::send_as(world.spawn<collector<commit_received>>(member, log), shard,
               commit{0, {7, 7}, 1, {{host.id(), lost, 0}}});
  world.run_for(60s);

  const auto reports = world.observed<samples_reported>();
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].second.samples == lost);
  interval_set computed;
  for (const auto& [who, what] : world.observed<trained>())
    for (const auto& range : what.samples) {
      CHECK(computed.pieces(range.first, range.end()).empty());
      computed.insert(range.first, range.end());
    }
  CHECK(computed.pieces(0, 800).size() == 1);
  // The next round commits them.
  const auto rows = ledger->snapshot();
  REQUIRE_FALSE(rows.empty());
  CHECK(rows[0].state.state == index_state::kind::committed);
}
