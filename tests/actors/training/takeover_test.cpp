// A swarm of trainers, and members that claim branches nobody has, or give away false states.
#include "actors/data/data_shard.hpp"
#include "actors/dht/dht_node.hpp"
#include "actors/training/delayed_peer.hpp"
#include "actors/training/observations.hpp"
#include "actors/training/peer.hpp"
#include "tests/actors/support/certificates.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

constexpr float poison = 666;
constexpr std::size_t value_count = 64;

struct numbers final : sample_source {
  std::uint32_t sample_bytes() const override { return 4; }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    std::fill(out.begin(), out.end(), static_cast<std::byte>(index));
  }
  bool is_size_only() const override { return false; }
};

/// Each sample adds its first byte to the gradient. Counts the jobs and steps that used a poisoned
/// state or gradient.
class adding_work final : public workload {
public:
  explicit adding_work(std::shared_ptr<std::size_t> poisoned) : poisoned_(std::move(poisoned)) {}

  std::uint64_t value_count() const override { return ::value_count; }
  std::uint64_t sample_bytes() const override { return 4; }
  model_state initial() const override {
    model_state out;
    out.parameters = payload{std::vector<float>(::value_count)};
    return out;
  }
  double accumulate(const model_state& at, std::span<const std::byte> samples, std::uint64_t count,
                    std::span<double> sum) const override {
    note(at.parameters);
    for (std::uint64_t i = 0; i < count; ++i)
      for (auto& each : sum) each += static_cast<double>(samples[4 * i]) / 1024;
    return 0;
  }
  model_state step(const model_state& at, const payload& mean) const override {
    note(at.parameters);
    note(mean);
    auto out = at;
    const auto before = at.parameters.floats();
    std::vector<float> after(before.begin(), before.end());
    for (std::size_t i = 0; i < after.size(); ++i) after[i] += mean.floats()[i];
    out.parameters = payload{std::move(after)};
    ++out.step;
    return out;
  }

private:
  void note(const payload& values) const {
    if (values.floats()[0] == poison || values.floats()[0] != values.floats()[0]) ++*poisoned_;
  }
  std::shared_ptr<std::size_t> poisoned_;
};

/// A hostile member. It claims a state, and answers for it as `how` says.
class liar final : public caf::event_based_actor {
public:
  struct plan {
    std::vector<certified_round> chain; ///< the answer to each question; empty: none
    chain_point begin{0, {}};
    bool serves = false; ///< the liar gives poisoned bytes for each object that is asked for
    float bytes = poison;
  };
  liar(caf::actor_config& config, host&, std::shared_ptr<plan> how)
      : caf::event_based_actor(config), how_(std::move(how)) {
    set_default_handler(caf::drop);
  }

protected:
  caf::behavior make_behavior() override {
    return {
        [this](const chain_request& m) {
          if (how_->chain.empty()) return;
          chain_answer out;
          out.common = how_->begin;
          out.steps = how_->chain;
          send(m.reply_to, out);
        },
        [this](const state_request& m) {
          if (how_->serves) send(m.reply_to, object(m.object).offer());
        },
        [this](const state_chunk_request& m) {
          if (how_->serves)
            send(m.reply_to,
                 state_chunk{m.object, m.offset, object(m.object).bytes(m.offset, m.count)});
        },
    };
  }

private:
  shared_object object(const id128& name) const {
    model_state state;
    state.id = name;
    state.parameters = payload{std::vector<float>(value_count, how_->bytes)};
    return shared_object(state, 64);
  }
  std::shared_ptr<plan> how_;
};

struct swarm {
  mini_world world;
  std::shared_ptr<std::size_t> poisoned = std::make_shared<std::size_t>();
  std::shared_ptr<state_pool> pool =
      std::make_shared<state_pool>(std::make_shared<adding_work>(poisoned), false);
  caf::actor first_node;
  std::vector<mini_host*> trainers;
  std::vector<std::shared_ptr<liar::plan>> plans;
  bool overlaps;

  /// With `overlapping`, rounds run beside computing, and states have no chain.
  explicit swarm(std::size_t count, bool overlapping = false) : overlaps(overlapping) {
    auto& home = world.add_host("shard");
    first_node = world.spawn<dht_node>(home, dht_config{});
    data_shard_config data;
    data.dht = first_node;
    data.proves_rounds = !overlaps;
    world.spawn<data_shard>(home, data, std::make_shared<numbers>(),
                            std::make_shared<sample_ledger>(data.lease_time));
    for (std::size_t i = 0; i < count; ++i) add_trainer();
  }

  caf::actor add_node(mini_host& host) {
    dht_config dht;
    dht.bootstraps = {first_node};
    return world.spawn<dht_node>(host, dht);
  }
  mini_host& add_trainer(std::uint64_t epochs = 0) {
    auto& host = world.add_host(fmt::format("trainer-{}", trainers.size()));
    peer_config options;
    options.target_batch = 32;
    options.micro_batch = 4;
    options.prefetch_samples = 32;
    options.max_refresh = 2s;
    options.record_lifetime = 6s;
    options.epochs = epochs;
    options.device.samples_per_second = 40;
    options.averaging.matchmaking_time = 2s;
    options.averaging.chunk_bytes = 64;
    options.fetch.chunk_bytes = 64;
    // Each peer has a pool of its own, so that no state comes to it without a download.
    auto own = std::make_shared<state_pool>(std::make_shared<adding_work>(poisoned), false);
    if (overlaps) {
      overlap_options how;
      how.overlap = overlap::averaging;
      world.spawn<delayed_peer>(host, options, how, own, add_node(host));
    } else {
      world.spawn<peer>(host, options, own, add_node(host));
    }
    trainers.push_back(&host);
    return host;
  }

  struct hostile {
    mini_host* on;
    caf::actor node, address;
    std::shared_ptr<liar::plan> how;
  };
  hostile add_liar(bool serves = false, float bytes = poison) {
    auto& host = world.add_host(fmt::format("liar-{}", plans.size()));
    auto how = plans.emplace_back(std::make_shared<liar::plan>());
    how->serves = serves;
    how->bytes = bytes;
    const auto node = add_node(host);
    return {&host, node, world.spawn<liar>(host, how), how};
  }
  /// The liar's record lives for a day.
  void claim(const hostile& by, const progress& what) {
    record entry;
    entry.subkey = fmt::format("{:016x}", by.on->id());
    entry.address = by.address;
    entry.value = what.pack();
    entry.expires_utc_ns = by.on->utc_ns() + (24h / 1ns);
    world.send(by.node, store{progress_key, entry});
  }
  void claim(const hostile& by, const chain_point& what) {
    progress mine;
    mine.epoch = what.epoch;
    mine.state = what.state;
    mine.samples = 4;
    claim(by, mine);
  }
  std::size_t steps() const { return world.observed<stepped>().size(); }
  /// The state of the last step, and all states that steps have led to.
  chain_point head() const {
    const auto all = world.observed<stepped>();
    return {all.back().second.epoch, all.back().second.after};
  }
  /// True if each state that a peer adopted was the result of an honest step.
  bool adopted_only_true_states() const {
    std::set<state_id> made;
    for (const auto& [who, what] : world.observed<stepped>()) {
      made.insert(what.after);
      made.insert(what.before);
    }
    const auto all = world.observed<adopted>();
    return *poisoned == 0 && std::all_of(all.begin(), all.end(), [&](const auto& one) {
      return made.contains(one.second.state);
    });
  }
};

/// The steps that three trainers take in two minutes, two minutes after `attack`.
template <class Attack>
std::size_t steps_under(Attack attack, bool overlapping = false) {
  swarm t(3, overlapping);
  t.world.run_for(1min);
  REQUIRE(t.steps() > 30);
  attack(t);
  t.world.run_for(1min);
  const auto before = t.steps();
  t.world.run_for(2min);
  CHECK(t.adopted_only_true_states());
  return t.steps() - before;
}

} // namespace

TEST_CASE("takeover: a record of epoch 10^6 does not slow training down when its maker is dead") {
  const auto calm = steps_under([](swarm&) {});
  const auto attacked = steps_under([](swarm& t) {
    const auto mallory = t.add_liar();
    t.world.run_for(1s);
    t.claim(mallory, chain_point{1'000'000, {6, 6}});
    t.world.run_for(1s);
    mallory.on->kill();
  });
  INFO(calm << " steps without, " << attacked << " with");
  CHECK(calm > 60);
  CHECK(attacked * 20 >= calm * 19);
}

TEST_CASE("takeover: a donor behind a false claim gives its model to nobody") {
  const auto calm = steps_under([](swarm&) {});
  const auto attacked = steps_under([](swarm& t) {
    const auto mallory = t.add_liar(true);
    t.world.run_for(1s);
    t.claim(mallory, chain_point{1'000'000, {6, 6}});
  });
  CHECK(attacked * 20 >= calm * 19);
}

TEST_CASE("takeover: a member that certifies its own steps leads nobody away") {
  const auto calm = steps_under([](swarm&) {});
  const auto attacked = steps_under([](swarm& t) {
    const auto mallory = t.add_liar(true);
    t.world.run_for(1s);
    const auto last = t.world.observed<stepped>().back().second;
    chain_point at{last.epoch, last.after};
    mallory.how->begin = at;
    for (std::uint64_t i = 0; i < 200; ++i) {
      const auto round = certify({{mallory.on, mallory.address, 8}}, at, {i, 1});
      mallory.how->chain.push_back({round.roster, 0, round.version, round.votes, round.declines});
      at = step_of(shared_copy(round))->after;
    }
    t.claim(mallory, at);
  });
  CHECK(attacked * 20 >= calm * 19);
}

TEST_CASE("takeover: with overlap, a member that claims the next epoch alone leads nobody away") {
  constexpr bool overlapping = true;
  const auto calm = steps_under([](swarm&) {}, overlapping);
  CHECK(calm > 60);
  const auto attacked = steps_under(
      [](swarm& t) {
        const auto mallory = t.add_liar(true);
        for (std::uint64_t second = 0; second < 60; ++second) {
          t.world.run_for(1s);
          t.claim(mallory, chain_point{t.head().epoch + 1, {6, second}});
        }
      },
      overlapping);
  INFO(calm << " steps without, " << attacked << " with");
  CHECK(attacked * 20 >= calm * 19);
}

TEST_CASE("takeover: with overlap, a false history of the head stops nobody") {
  constexpr bool overlapping = true;
  swarm t(3, overlapping);
  t.world.run_for(1min);
  const auto mallory = t.add_liar(true);
  const auto before = t.steps();
  for (int second = 0; second < 60; ++second) {
    t.world.run_for(1s);
    progress lie;
    lie.epoch = t.head().epoch;
    lie.state = t.head().state;
    lie.history = 1'000'000;
    t.claim(mallory, lie);
  }
  CHECK(t.steps() - before > 30);
  CHECK(t.adopted_only_true_states());
}

TEST_CASE("takeover: a claim beyond the last epoch does not make a trainer stop") {
  swarm t(2);
  t.add_trainer(1000);
  t.world.run_for(30s);
  const auto mallory = t.add_liar(true);
  t.world.run_for(1s);
  t.claim(mallory, chain_point{5000, {6, 6}});
  t.world.run_for(1min);
  const auto late = t.world.now();
  t.world.run_for(30s);
  std::set<peer_id> stepping;
  const auto all = t.world.observed<stepped>();
  for (auto i = all.size() - 9; i < all.size(); ++i) stepping.insert(all[i].first);
  CHECK(stepping.size() == 3);
  CHECK(late > 0s);
}

TEST_CASE("takeover: samples and speeds that a member only claims stop no rounds") {
  const auto calm = steps_under([](swarm&) {});
  for (const bool speed : {false, true}) {
    CAPTURE(speed);
    const auto attacked = steps_under([&](swarm& t) {
      const auto mallory = t.add_liar();
      t.world.run_for(1s);
      const auto last = t.world.observed<stepped>().back().second;
      progress lie;
      lie.epoch = last.epoch;
      lie.state = last.after;
      (speed ? lie.millisamples_per_second : lie.samples) =
          std::numeric_limits<std::uint64_t>::max() / 2;
      lie.computes_for_ms = std::numeric_limits<std::uint64_t>::max() / 2;
      t.claim(mallory, lie);
    });
    INFO(calm << " steps without, " << attacked << " with");
    CHECK(attacked * 10 >= calm * 9);
  }
}

TEST_CASE("takeover: a joiner among lying donors joins with one honest one, and adopts nothing "
          "false") {
  constexpr std::size_t donors = 4;
  for (std::size_t liars = 1; liars < donors; ++liars)
    for (const bool known_state : {false, true}) {
      CAPTURE(liars);
      CAPTURE(known_state);
      swarm t(donors - liars);
      t.world.run_for(1min);
      REQUIRE(t.steps() > 10);
      std::vector<swarm::hostile> hostile;
      for (std::size_t i = 0; i < liars; ++i)
        hostile.push_back(
            t.add_liar(true, i % 2 == 0 ? poison : std::numeric_limits<float>::quiet_NaN()));
      t.world.run_for(1s);
      // The liars claim the true head and have false bytes, or they claim a state that nobody has.
      for (std::size_t i = 0; i < liars; ++i)
        t.claim(hostile[i], known_state ? t.head() : chain_point{1'000'000 + i, {6, i}});
      t.world.run_for(1s);
      auto& joiner = t.add_trainer();
      for (int second = 0; second < 60; ++second) {
        t.world.run_for(1s);
        if (known_state)
          for (const auto& each : hostile) t.claim(each, t.head());
      }
      const auto all = t.world.observed<stepped>();
      const auto own = std::count_if(all.begin(), all.end(),
                                     [&](const auto& one) { return one.first == joiner.id(); });
      CHECK(own > 5);
      CHECK(t.adopted_only_true_states());
    }
}
