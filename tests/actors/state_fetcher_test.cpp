#include "actors/training/peer.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

using donor = collector<state_request, state_chunk_request, state_offer, state_refused>;
using owner = collector<state_report>;

template <class Actor>
struct played {
  caf::actor address;
  std::shared_ptr<typename Actor::log> log;

  template <class T>
  const std::vector<T>& seen() const {
    return std::get<std::vector<T>>(*log);
  }
};

template <class Actor>
played<Actor> add(mini_world& world, const std::string& name) {
  auto log = std::make_shared<typename Actor::log>();
  return {world.spawn<Actor>(world.add_host(name), log), log};
}

model_state a_state() {
  model_state out;
  out.epoch = 3;
  out.id = {1, 2};
  out.parameters = payload{std::vector<float>{1, 2, 3, 4}};
  return out;
}

state_offer offer_of(const model_state& state) {
  return {state.epoch, state.id, state.step, state.bytes(), state.parameters.size(), state.samples, content_of(state)};
}

/// Work without numbers, for a peer that only answers.
class no_work final : public workload {
 public:
  std::uint64_t value_count() const override { return 4; }
  std::uint64_t sample_bytes() const override { return 1; }
  bool hollow() const override { return true; }
  model_state initial() const override {
    model_state out;
    out.parameters = payload::hollow(16);
    return out;
  }
  double accumulate(const model_state&, std::span<const std::byte>, std::uint64_t, std::span<double>) const override {
    return 0;
  }
  model_state step(const model_state& at, const payload&) const override { return at; }
};

}  // namespace

TEST_CASE("a donor that refuses is left out at once, and the others deliver its chunks") {
  mini_world world;
  auto refuses = add<donor>(world, "refuses"), gives = add<donor>(world, "gives");
  auto asker = add<owner>(world, "asker");
  auto state = a_state();
  auto fetcher = world.spawn<state_fetcher>(world.add_host("joiner"), asker.address, fetch_config{.chunk_bytes = 4},
                                            std::vector{refuses.address, gives.address}, state.bytes(), false);
  world.settle();
  REQUIRE(refuses.seen<state_request>().size() == 1);
  caf::send_as(refuses.address, fetcher, state_refused{static_cast<std::uint8_t>(reason::out_of_sync)});
  caf::send_as(gives.address, fetcher, offer_of(state));
  world.settle();
  for (std::size_t next = 0; next < gives.seen<state_chunk_request>().size(); ++next) {
    auto asked = gives.seen<state_chunk_request>()[next];
    caf::send_as(gives.address, fetcher, state_chunk{state.id, asked.offset, state.parameters.slice(asked.offset, asked.count)});
    world.settle();
  }
  CHECK(refuses.seen<state_chunk_request>().empty());
  REQUIRE(asker.seen<state_report>().size() == 1);
  auto got = asker.seen<state_report>().front().state;
  REQUIRE(got);
  CHECK(content_of(*got) == content_of(state));
  CHECK(world.now() < 1ms);
}

TEST_CASE("when all donors refuse the owner knows at once, and a refusal by a stranger is counted") {
  mini_world world;
  auto one = add<donor>(world, "one"), two = add<donor>(world, "two"), stranger = add<donor>(world, "stranger");
  auto asker = add<owner>(world, "asker");
  auto fetcher = world.spawn<state_fetcher>(world.add_host("joiner"), asker.address, fetch_config{},
                                            std::vector{one.address, two.address}, std::uint64_t{16}, false);
  world.settle();
  caf::send_as(stranger.address, fetcher, state_refused{});
  caf::send_as(one.address, fetcher, state_refused{});
  world.settle();
  CHECK(asker.seen<state_report>().empty());
  CHECK(world.observed<misbehaved>().size() == 1);
  caf::send_as(two.address, fetcher, state_refused{});
  world.settle();
  REQUIRE(asker.seen<state_report>().size() == 1);
  CHECK(asker.seen<state_report>().front().state == nullptr);
  CHECK(world.now() < 1ms);
}

TEST_CASE("a peer that is still joining or downloading refuses to be a donor, and one that is in sync offers") {
  mini_world world;
  auto directory = add<donor>(world, "directory"), asks = add<donor>(world, "asks"), ahead = add<donor>(world, "ahead");
  auto pool = std::make_shared<state_pool>(std::make_shared<no_work>());
  auto newcomer = world.spawn<peer>(world.add_host("newcomer"), peer_config{}, pool, directory.address);
  auto ask = [&] {
    caf::send_as(asks.address, newcomer, state_request{asks.address});
    world.settle();
  };
  ask();
  REQUIRE(asks.seen<state_refused>().size() == 1);
  CHECK(asks.seen<state_refused>().front().why == static_cast<std::uint8_t>(reason::out_of_sync));

  // It reads that somebody is ahead, and downloads.
  progress theirs;
  theirs.epoch = 5;
  theirs.state = {7, 7};
  theirs.history = 100;
  caf::anon_send(newcomer, found{progress_key, 0, {{"00000000000000ff", ahead.address, theirs.pack(), 0}}});
  world.settle();
  REQUIRE(ahead.seen<state_request>().size() == 1);
  ask();
  CHECK(asks.seen<state_refused>().size() == 2);
  CHECK(asks.seen<state_offer>().empty());

  // Refused itself, it asks the next one as soon as its records name one.
  auto also = add<donor>(world, "also");
  caf::send_as(ahead.address, ahead.seen<state_request>().front().reply_to, state_refused{});
  world.settle();
  caf::anon_send(newcomer, found{progress_key, 0,
                                 {{"00000000000000fe", also.address, theirs.pack(), 0},
                                  {"00000000000000ff", ahead.address, theirs.pack(), 0}}});
  world.settle();
  CHECK(also.seen<state_request>().size() == 1);
  CHECK(ahead.seen<state_request>().size() == 1);
  CHECK(world.now() < 1s);

  auto first = world.spawn<peer>(world.add_host("first"), peer_config{}, pool, directory.address);
  caf::anon_send(first, found{progress_key, 0, {}});
  caf::send_as(asks.address, first, state_request{asks.address});
  world.settle();
  CHECK(asks.seen<state_offer>().size() == 1);
  CHECK(world.observed<misbehaved>().empty());
}
