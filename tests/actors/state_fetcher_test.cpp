#include "actors/data/data_shard.hpp"
#include "actors/training/delayed_peer.hpp"
#include "actors/training/observations.hpp"
#include "actors/training/peer.hpp"
#include "actors/training/state_cache.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cstring>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

using donor = collector<state_request, state_chunk_request, state_offer, state_refused, state_hold>;
using owner = collector<download_report, donors_wanted>;

template <class Actor>
struct played {
  caf::actor address;
  std::shared_ptr<typename Actor::log> log;
  mini_host* on;

  template <class T>
  const std::vector<T>& seen() const {
    return std::get<std::vector<T>>(*log);
  }
};

template <class Actor>
played<Actor> add(mini_world& world, const std::string& name) {
  auto log = std::make_shared<typename Actor::log>();
  auto& host = world.add_host(name);
  return {world.spawn<Actor>(host, log), log, &host};
}

/// The progress record of the peer that the test plays.
record record_of(const played<donor>& of, const progress& what) {
  return {fmt::format("{:016x}", of.on->id()), of.address, what.pack(), 0};
}

/// `newcomer` reads that `ahead` is at epoch 5, and asks it for the state. Returns the request.
progress downloads_from(mini_world& world, const caf::actor& newcomer, played<donor>& ahead) {
  progress theirs;
  theirs.epoch = 5;
  theirs.state = {7, 7};
  theirs.history = 100;
  caf::anon_send(newcomer, found{progress_key, 0, {record_of(ahead, theirs)}});
  world.settle();
  REQUIRE(ahead.seen<state_request>().size() == 1);
  return theirs;
}

model_state a_state(std::size_t values = 4) {
  model_state out;
  out.epoch = 3;
  out.id = {1, 2};
  std::vector<float> numbers(values);
  for (std::size_t i = 0; i < values; ++i) numbers[i] = static_cast<float>(i + 1);
  out.parameters = payload{std::move(numbers)};
  return out;
}

std::shared_ptr<state_download> download_of(const model_state& state) {
  return std::make_shared<state_download>(state.id, state.parameters.size(), state.optimizer.size(),
                                          false);
}

/// A state of 40 chunks of 4 bytes, donors that the test plays, and a joiner.
struct lab {
  mini_world world;
  model_state state = a_state(40);
  shared_object object{state, 4};
  std::vector<played<donor>> donors;
  std::vector<std::size_t> answered;
  played<owner> asker = add<owner>(world, "asker");
  std::shared_ptr<state_download> download = download_of(state);
  caf::actor fetcher;

  explicit lab(std::size_t count) : answered(count) {
    for (std::size_t i = 0; i < count; ++i)
      donors.push_back(add<donor>(world, "donor-" + std::to_string(i)));
  }

  std::vector<expected_peer> peers(std::size_t from, std::size_t to) const {
    std::vector<expected_peer> out;
    for (auto i = from; i < to; ++i) out.push_back({100 + i, donors[i].address});
    return out;
  }

  void start(std::size_t to, fetch_config how = {}) {
    fetcher = world.spawn<state_fetcher>(world.add_host("joiner"), asker.address, how, peers(0, to),
                                         download);
    world.settle();
  }
  void offer(std::size_t from, const shared_object& what) {
    caf::send_as(donors[from].address, fetcher, what.offer());
    world.settle();
  }
  void offer(std::size_t from) { offer(from, object); }
  void refuse(std::size_t from, reason why) {
    caf::send_as(donors[from].address, fetcher, state_refused{static_cast<std::uint8_t>(why)});
    world.settle();
  }
  /// Answers up to `most` open requests; returns their number.
  std::size_t serve(std::size_t from, std::size_t most, const shared_object& what) {
    std::size_t done = 0;
    for (; done < most && answered[from] < donors[from].seen<state_chunk_request>().size();
         ++done) {
      const auto asked = donors[from].seen<state_chunk_request>()[answered[from]++];
      caf::send_as(donors[from].address, fetcher,
                   state_chunk{asked.object, asked.offset, what.bytes(asked.offset, asked.count)});
      world.settle();
    }
    return done;
  }
  std::size_t serve(std::size_t from, std::size_t most = 1000) { return serve(from, most, object); }
  void kill(std::size_t which) {
    caf::anon_send_exit(donors[which].address, caf::exit_reason::kill);
    world.settle();
  }
  void give(std::vector<expected_peer> more) {
    caf::send_as(asker.address, fetcher, more_donors{std::move(more)});
    world.settle();
  }
  const std::vector<download_report>& reports() const { return asker.seen<download_report>(); }
  bool got_it() {
    return download->complete() && content_of(download->state()) == content_of(state);
  }
};

/// A workload without numbers, for a peer that only answers.
class no_work final : public workload {
public:
  std::uint64_t value_count() const override { return 4; }
  std::uint64_t sample_bytes() const override { return 1; }
  bool is_size_only() const override { return true; }
  model_state initial() const override {
    model_state out;
    out.parameters = payload::size_only(16);
    return out;
  }
  double accumulate(const model_state&, std::span<const std::byte>, std::uint64_t,
                    std::span<double>) const override {
    return 0;
  }
  model_state step(const model_state& at, const payload&) const override { return at; }
};

} // namespace

TEST_CASE("a donor that refuses is dropped at once, and the others deliver its chunks") {
  lab l(2);
  l.start(2);
  REQUIRE(l.donors[0].seen<state_request>().size() == 1);
  l.refuse(0, reason::out_of_sync);
  l.offer(1);
  while (l.serve(1) > 0) {
  }
  CHECK(l.donors[0].seen<state_chunk_request>().empty());
  REQUIRE(l.reports().size() == 1);
  CHECK(l.reports().front().why == reason::none);
  CHECK(l.reports().front().bytes == l.state.bytes());
  CHECK(l.reports().front().donors == 1);
  CHECK(l.reports().front().holders == std::vector<peer_id>{101});
  CHECK(l.got_it());
  CHECK(l.world.now() < 1ms);
}

TEST_CASE(
    "the owner knows at once that all donors refused, and a refusal by a stranger is counted") {
  lab l(3);
  l.start(2);
  caf::send_as(l.donors[2].address, l.fetcher, state_refused{});
  l.refuse(0, reason::out_of_sync);
  CHECK(l.reports().empty());
  CHECK(l.world.observed<misbehaved>().size() == 1);
  REQUIRE(l.asker.seen<donors_wanted>().size() == 1);
  l.give({});
  l.refuse(1, reason::out_of_sync);
  REQUIRE(l.reports().size() == 1);
  CHECK(l.reports().front().why == reason::out_of_sync);
  CHECK(l.world.now() < 1ms);
}

TEST_CASE("donors that die one after another cost no verified chunk") {
  lab l(6);
  l.start(2);
  l.offer(0);
  l.offer(1);
  for (std::size_t next = 2; next < 6; ++next) {
    l.serve(next - 2, 5);
    l.kill(next - 2);
    l.give(l.peers(next, next + 1));
    l.offer(next);
  }
  while (l.serve(4) + l.serve(5) > 0) {
  }
  REQUIRE(l.reports().size() == 1);
  CHECK(l.reports().front().why == reason::none);
  CHECK(l.reports().front().bytes == l.state.bytes());
  CHECK(l.reports().front().donors == 6);
  CHECK(l.got_it());
}

TEST_CASE("a download resumes where the last attempt ended") {
  lab l(2);
  l.start(1);
  l.offer(0);
  l.serve(0, 30);
  l.kill(0);
  l.give({});
  REQUIRE(l.reports().size() == 1);
  CHECK(l.reports().front().why == reason::donors_lost);
  CHECK(l.reports().front().bytes == 120);
  l.fetcher = l.world.spawn<state_fetcher>(l.world.add_host("again"), l.asker.address,
                                           fetch_config{}, l.peers(1, 2), l.download);
  l.world.settle();
  l.offer(1);
  while (l.serve(1) > 0) {
  }
  REQUIRE(l.reports().size() == 2);
  CHECK(l.reports().back().why == reason::none);
  CHECK(l.reports().back().bytes == 40);
  CHECK(l.got_it());
}

TEST_CASE("the sender of a wrong chunk is found, reported and not asked again, and all other "
          "chunks stay") {
  lab l(3);
  l.start(3);
  auto other = a_state(40);
  std::vector<float> wrong(40, 7);
  other.parameters = payload{std::move(wrong)};
  const shared_object lie(other, 4);
  for (std::size_t i = 0; i < 3; ++i) l.offer(i);
  l.serve(0, 4);
  l.serve(1, 1, lie);
  const auto asked = l.donors[1].seen<state_chunk_request>().size();
  while (l.serve(0) + l.serve(2) > 0) {
  }
  CHECK(l.donors[1].seen<state_chunk_request>().size() == asked);
  REQUIRE(l.reports().size() == 1);
  CHECK(l.reports().front().why == reason::none);
  CHECK(l.reports().front().faulty == std::vector<peer_id>{101});
  CHECK(l.reports().front().rejected == 4);
  CHECK(l.reports().front().bytes == l.state.bytes() + 4);
  CHECK(l.reports().front().holders == std::vector<peer_id>{100, 102});
  CHECK(l.world.observed<misbehaved>().size() == 1);
  CHECK(l.got_it());
}

TEST_CASE(
    "the version that most donors offer is downloaded, even if another donor answered first") {
  lab l(3);
  l.start(3);
  auto other = a_state(40);
  std::vector<float> wrong(40, 7);
  other.parameters = payload{std::move(wrong)};
  const shared_object lie(other, 4);
  l.offer(0, lie);
  l.serve(0, 10, lie);
  l.offer(1);
  l.offer(2);
  const auto asked = l.donors[0].seen<state_chunk_request>().size();
  while (l.serve(1) + l.serve(2) > 0) {
  }
  CHECK(l.donors[0].seen<state_chunk_request>().size() == asked);
  REQUIRE(l.reports().size() == 1);
  CHECK(l.got_it());
}

TEST_CASE(
    "impossible offers are refused: wrong size, no chunks, too few hashes, too many commits") {
  for (unsigned how = 0; how < 6; ++how) {
    lab l(1);
    l.start(1);
    auto offer = l.object.offer();
    if (how == 0) offer.size += 4;
    if (how == 1) offer.parameter_bytes -= 2;
    if (how == 2) offer.chunk_bytes = 0;
    if (how == 3) offer.hashes = offer.hashes.slice(0, offer.hashes.size() - 16);
    if (how == 4) offer.object = {9, 9};
    if (how == 5) offer.commits.resize(most_commits + 1);
    caf::send_as(l.donors[0].address, l.fetcher, offer);
    l.world.settle();
    l.give({});
    REQUIRE(l.reports().size() == 1);
    CHECK(l.reports().front().why == reason::bad_message);
    CHECK(l.reports().front().faulty.size() == 1);
    CHECK(l.world.observed<misbehaved>().size() == 1);
  }
}

TEST_CASE(
    "unanswered commits of the donors come with a state, each once, also from a donor that died") {
  lab l(3);
  l.start(3);
  const auto commit_of = [](std::uint64_t round, std::uint64_t first) {
    return commit{round, {round, 0}, 1, {{7, {{first, 4}}, 1}}};
  };
  const auto offer = [&](std::size_t from, std::vector<commit> commits, const shared_object& what) {
    auto message = what.offer();
    message.commits = std::move(commits);
    caf::send_as(l.donors[from].address, l.fetcher, message);
    l.world.settle();
  };
  offer(0, {commit_of(1, 10), commit_of(2, 14)}, l.object);
  offer(1, {commit_of(2, 14), commit_of(3, 18)}, l.object);
  auto other = a_state(40);
  other.samples = 99;
  offer(2, {commit_of(4, 22)},
        shared_object(other, 4)); // another state, which no donor offers here
  l.kill(0);
  while (l.serve(1) > 0) {
  }
  REQUIRE(l.reports().size() == 1);
  CHECK(l.got_it());
  std::vector<std::uint64_t> rounds;
  for (const auto& one : l.reports().front().commits) rounds.push_back(one.group.high);
  CHECK(rounds == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(l.world.observed<misbehaved>().empty());
}

TEST_CASE("a repeated offer is ignored, and a donor that changes its offer is dropped") {
  lab l(2);
  l.start(2);
  l.offer(0);
  l.offer(0);
  CHECK(l.world.observed<misbehaved>().empty());
  auto other = l.object.offer();
  ++other.samples;
  caf::send_as(l.donors[0].address, l.fetcher, other);
  l.world.settle();
  REQUIRE(l.world.observed<misbehaved>().size() == 1);
  l.offer(1);
  while (l.serve(1) > 0) {
  }
  CHECK(l.got_it());
}

TEST_CASE("size-only samples are refused where the workload has bytes") {
  class bytes_work final : public workload {
  public:
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
    model_state step(const model_state& at, const payload&) const override { return at; }
  };
  mini_world world;
  auto directory = add<donor>(world, "directory"), shard = add<donor>(world, "shard");
  auto trainer = world.spawn<peer>(world.add_host("trainer"), peer_config{},
                                   std::make_shared<state_pool>(std::make_shared<bytes_work>()),
                                   directory.address);
  caf::anon_send(trainer, found{progress_key, 0, {}});
  caf::anon_send(trainer,
                 found{std::string(data_shard_key), 1, {record{"shard", shard.address, {}, 0}}});
  world.settle();
  const auto give = [&](payload data) {
    caf::send_as(shard.address, trainer, samples{{0, 2048}, std::move(data)});
    world.run_for(1s);
  };
  give(payload::size_only(2048 * 4));
  CHECK(world.observed<misbehaved>().size() == 1);
  CHECK(world.observed<trained>().empty());
  give(payload{std::vector<std::byte>(2048 * 4)});
  CHECK(world.observed<misbehaved>().size() == 1);
  CHECK_FALSE(world.observed<trained>().empty());
}

TEST_CASE("a busy donor is replaced by another one, and a reserve sends chunks when it is needed") {
  lab l(4);
  fetch_config how;
  how.donors = 2;
  how.reserves = 1;
  l.start(3, how);
  CHECK(l.donors[1].seen<state_request>().front().reserve == 0);
  CHECK(l.donors[2].seen<state_request>().front().reserve == 1);
  l.offer(0);
  l.offer(2);
  CHECK(l.donors[2].seen<state_chunk_request>().empty());
  l.refuse(1, reason::busy);
  CHECK(l.donors[2].seen<state_chunk_request>().size() == how.window_chunks);
  REQUIRE(l.asker.seen<donors_wanted>().size() == 1);
  l.give(l.peers(3, 4));
  CHECK(l.donors[3].seen<state_request>().front().reserve == 1);
  l.offer(3);
  l.serve(0, 10);
  l.refuse(2, reason::busy); // meanwhile busy with other downloads
  l.give({});
  while (l.serve(0) + l.serve(3) > 0) {
  }
  REQUIRE(l.reports().size() == 1);
  CHECK(l.reports().front().bytes == l.state.bytes());
  CHECK(l.got_it());
  CHECK(l.donors[3].seen<state_hold>().back().done == 1);
}

TEST_CASE("with a state for each donor, another state is downloaded once the donors of the first "
          "one are gone") {
  lab l(3);
  l.download = std::make_shared<state_download>(state_id{}, l.state.parameters.size(),
                                                l.state.optimizer.size(), false);
  auto others = l.state;
  others.id = {3, 4};
  others.parameters = payload{std::vector<float>(40, 7.0f)};
  const shared_object second(others, 4);
  l.start(2);
  l.offer(0);
  l.offer(1, second);
  l.serve(0, 5);
  CHECK(l.donors[1].seen<state_chunk_request>().empty());
  CHECK(l.reports().empty());
  l.refuse(0, reason::busy);
  CHECK_FALSE(l.donors[1].seen<state_chunk_request>().empty());
  l.give({});
  while (l.serve(1, 1000, second) > 0) {
  }
  REQUIRE(l.reports().size() == 1);
  CHECK(l.reports().front().why == reason::none);
  CHECK(l.download->complete());
  CHECK(content_of(l.download->state()) == content_of(others));
}

TEST_CASE("a donor of another branch, or with a far epoch, is left alone and not accused") {
  for (const bool far : {false, true}) {
    lab l(2);
    l.download->want(far ? state_id{} : l.state.id, far ? l.state.epoch : 1'000'000);
    auto other = l.state;
    if (far)
      other.epoch = 1'000'000;
    else
      other.id = {3, 4};
    auto unwanted = shared_object(other, 4).offer();
    unwanted.object = l.state.id;
    l.start(2);
    caf::send_as(l.donors[0].address, l.fetcher, unwanted);
    l.world.settle();
    CHECK(l.donors[0].seen<state_chunk_request>().empty());
    l.offer(1);
    l.give({});
    while (l.serve(1) > 0) {
    }
    REQUIRE(l.reports().size() == 1);
    CHECK(l.reports().front().faulty.empty());
    CHECK(l.got_it());
    CHECK(l.world.observed<misbehaved>().empty());
  }
}

TEST_CASE(
    "a download with two correct donors ends once, with their state, and neither is reported") {
  enum class nature { honest, mortal, faulty_donor, other_state, busy, lacking, silent };
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    INFO("seed " << seed);
    auto draws = stream(seed, "donors");
    const std::size_t count = 3 + draws.below(6);
    lab l(count);
    std::vector<nature> is(count);
    for (auto& one : is)
      one = std::array{nature::mortal, nature::faulty_donor, nature::busy,
                       nature::silent}[draws.below(4)];
    fetch_config how;
    how.window_chunks = 1 + static_cast<std::uint32_t>(draws.below(3));
    how.donors = 1 + draws.below(3);
    how.reserves = draws.below(2);
    how.donor_timeout = 30s;
    if (how.donors > 1)
      // More such donors than it asks would end the attempt.
      is[draws.below(count)] = nature::lacking;
    const auto first = draws.below(count), second = (first + 1 + draws.below(count - 1)) % count;
    is[first] = is[second] = nature::honest;
    std::size_t given = 1 + draws.below(count), wishes = 0;
    // A download that knew a faulty donor before two correct ones would believe it.
    const bool lies = how.donors == 3 && given >= 3 && first < 3 && second < 3;
    if (lies) is[3 - first - second] = nature::other_state;
    auto other = a_state(40);
    other.parameters = payload{std::vector<float>(40, 7)};
    const shared_object lie(other, 4);
    std::vector<std::size_t> heard(count), alive(count, 1);
    l.start(given, how);
    const auto act = [&](std::size_t i, std::size_t most) {
      if (!alive[i] || is[i] == nature::silent) return;
      if (heard[i] < l.donors[i].seen<state_request>().size()) {
        heard[i] = l.donors[i].seen<state_request>().size();
        if (is[i] == nature::busy || is[i] == nature::lacking)
          return l.refuse(i, is[i] == nature::busy ? reason::busy : reason::out_of_sync);
        l.offer(i, is[i] == nature::other_state ? lie : l.object);
      }
      if (is[i] == nature::other_state && (heard[first] == 0 || heard[second] == 0)) return;
      l.serve(i, most,
              is[i] == nature::faulty_donor || is[i] == nature::other_state ? lie : l.object);
    };
    for (int steps = 0; l.reports().empty() && steps < 2000; ++steps) {
      const auto i = draws.below(count);
      const auto what = draws.below(100);
      if (what < 70)
        act(i, 1 + draws.below(4));
      else if (what < 75 && is[i] == nature::mortal && alive[i])
        l.kill(i), alive[i] = 0;
      else if (what < 85)
        l.world.run_for(std::chrono::milliseconds(1 + draws.below(1500)));
      else if (wishes < l.asker.seen<donors_wanted>().size()) {
        ++wishes;
        const auto more = std::min(count, given + 1 + draws.below(2));
        l.give(l.peers(given, more));
        given = more;
      }
    }
    std::string natures;
    for (std::size_t i = 0; i < count; ++i)
      natures += std::to_string(int(is[i])) + (alive[i] ? "" : "x") + (i < given ? " " : "- ");
    INFO(natures << " wishes " << wishes << " of " << l.asker.seen<donors_wanted>().size()
                 << " now " << l.world.now().count() / 1e9 << " reports " << l.reports().size()
                 << " begun " << l.download->begun() << " missing "
                 << (l.download->begun() ? l.download->missing_bytes() : 0));
    REQUIRE(l.reports().size() == 1);
    CHECK(l.reports().front().why == reason::none);
    CHECK(l.got_it());
    for (const auto& [who, what] : l.world.observed<misbehaved>())
      CHECK(is[what.culprit - 100] == nature::faulty_donor);
    for (const auto faulty_donor : l.reports().front().faulty)
      CHECK(is[faulty_donor - 100] == nature::faulty_donor);
  }
}

TEST_CASE(
    "a silent donor is dropped, and reserves hear from time to time that the download goes on") {
  lab l(3);
  fetch_config how;
  how.donors = 1;
  how.reserves = 1;
  l.start(2, how);
  l.offer(0);
  l.offer(1);
  l.world.run_for(how.donor_timeout / 2);
  CHECK(l.donors[1].seen<state_hold>().size() == 2);
  CHECK(l.donors[1].seen<state_chunk_request>().empty());
  l.world.run_for(how.donor_timeout);
  while (l.serve(1) > 0) {
  }
  REQUIRE(l.reports().size() == 1);
  CHECK(l.reports().front().why == reason::none);
  CHECK(l.got_it());
}

TEST_CASE("interning shares the bytes of a known state, and keeps the epoch of the new one") {
  state_pool pool(std::make_shared<no_work>());
  const auto first = pool.initial();
  auto later = std::make_shared<model_state>(
      // A Moshpit peer that skips a round has the same state one epoch later.
      *first);
  later->epoch = first->epoch + 3;
  const auto mine = pool.intern(later);
  CHECK(mine->epoch == first->epoch + 3);
  CHECK(mine->id == first->id);
  CHECK(pool.intern(std::make_shared<model_state>(*first)) == first);
}

TEST_CASE(
    "the state cache keeps the last states and steps, and older ones while downloads use them") {
  using namespace std::chrono_literals;
  mini_world world;
  auto one = add<donor>(world, "one").address, two = add<donor>(world, "two").address;
  state_cache cache({.recent = 2, .pinned = 1, .steps = 4, .uploads = 1, .lease = 10s});
  const auto at = [](std::uint64_t epoch) {
    auto out = a_state();
    out.epoch = epoch;
    out.id = {epoch, 1};
    return std::make_shared<const model_state>(std::move(out));
  };
  const auto current = at(100);
  std::uint64_t epoch = 0;
  auto go_on = [&](duration now) {
    const auto before = at(epoch++);
    cache.put(before,
              taken_step{epoch, {epoch, 1}, 8 * epoch, payload{std::vector<float>{1, 2, 3, 4}}},
              now);
  };
  const auto has = [&](std::uint64_t state) {
    return cache.find({state, 1}, current, 4) != nullptr;
  };
  const auto has_step = [&](std::uint64_t from) {
    return cache.find(step_object({from, 1}), current, 4) != nullptr;
  };
  for (int i = 0; i < 4; ++i) go_on(0s);
  CHECK(!has(1));
  CHECK(!has_step(1));
  CHECK(has(2));
  CHECK(has(3));
  CHECK(has_step(2));
  CHECK(has(100));
  CHECK(cache.find({}, current, 4)->offer().object == current->id);
  CHECK(cache.find(step_object({3, 1}), current, 4)->offer().samples == 32);

  REQUIRE(cache.admit(one, {}, *cache.find({2, 1}, current, 4), false, 1s));
  CHECK(!cache.admit(two, {}, *cache.find({3, 1}, current, 4), false, 1s)); // no place left
  CHECK(cache.admit(two, {}, *cache.find({3, 1}, current, 4), true, 1s));   // as a reserve
  for (int i = 0; i < 3; ++i) go_on(2s);
  CHECK(has(2));  // leased
  CHECK(!has(3)); // leased, but only one state may be pinned
  for (std::uint64_t i = 2; i < 7; ++i) CHECK(has_step(i));
  for (int i = 0; i < 2; ++i) go_on(3s);
  CHECK(!has_step(2)); // six are kept
  CHECK(has_step(3));
  cache.release(one);
  CHECK(cache.admit(two, {}, *cache.find({8, 1}, current, 4), false, 4s));
  CHECK(cache.uploads(4s) == 1);
  CHECK(cache.renew(one, {2, 1}, 9s));
  go_on(12s);
  CHECK(has(2)); // renewed at 9 s
  CHECK(!cache.renew(one, {3, 1}, 12s));
  go_on(20s);
  CHECK(!has(2));
  CHECK(cache.uploads(20s) == 0);
  CHECK(!has_step(8));
}

TEST_CASE("a peer serves the later of two steps from one state, and the earlier one to a download "
          "under way") {
  using namespace std::chrono_literals;
  mini_world world;
  const auto joiner = add<donor>(world, "joiner").address;
  state_cache cache({.recent = 3, .lease = 10s});
  const auto before = std::make_shared<const model_state>(a_state());
  const auto step = step_object(before->id);
  const auto take = [&](const state_id& after, duration now) {
    cache.put(before, taken_step{4, after, 8, payload{std::vector<float>{1, 2, 3, 4}}}, now);
  };
  const auto served = [&] { return cache.find(step, before, 4)->offer().state; };
  take({7, 7}, 0s);
  CHECK(served() == state_id{7, 7});
  take({8, 8}, 1s);
  CHECK(served() == state_id{8, 8});
  REQUIRE(cache.admit(joiner, {}, *cache.find(step, before, 4), false, 2s));
  take({9, 9}, 3s);
  CHECK(served() == state_id{8, 8});
  take({9, 9}, 13s);
  CHECK(served() == state_id{9, 9});
}

TEST_CASE("a state is cut into chunks across the end of the parameters") {
  auto state = a_state(3);
  state.optimizer = payload{std::vector<float>{9, 8}};
  const shared_object object(state, 8);
  CHECK(object.size() == 20);
  CHECK(object.offer().hashes.size() == 3 * hash_bytes);
  std::vector<std::byte> all;
  for (std::uint64_t at = 0; at < 20; at += 8) {
    const auto chunk = object.bytes(at, 8);
    CHECK(chunk.size() == std::min<std::uint64_t>(8, 20 - at));
    all.insert(all.end(), chunk.bytes().begin(), chunk.bytes().end());
  }
  CHECK(object.bytes(20, 8).empty());
  std::vector<float> back(5);
  std::memcpy(back.data(), all.data(), 20);
  CHECK(back == std::vector<float>{1, 2, 3, 9, 8});
}

TEST_CASE(
    "a joining or downloading peer refuses to be a donor, and a peer in sync offers its state") {
  mini_world world;
  auto directory = add<donor>(world, "directory"), asks = add<donor>(world, "asks"),
       ahead = add<donor>(world, "ahead");
  auto pool = std::make_shared<state_pool>(std::make_shared<no_work>());
  auto newcomer =
      world.spawn<delayed_peer>(world.add_host("newcomer"), peer_config{},
                                overlap_options{overlap::update}, pool, directory.address);
  auto ask = [&] {
    caf::send_as(asks.address, newcomer, state_request{{}, 0, asks.address});
    world.settle();
  };
  ask();
  REQUIRE(asks.seen<state_refused>().size() == 1);
  CHECK(asks.seen<state_refused>().front().why == static_cast<std::uint8_t>(reason::out_of_sync));

  // The peer reads that another one is ahead, and downloads.
  const auto theirs = downloads_from(world, newcomer, ahead);
  ask();
  CHECK(asks.seen<state_refused>().size() == 2);
  CHECK(asks.seen<state_offer>().empty());

  // After a refusal, the peer asks the next donor as soon as a record names one.
  auto also = add<donor>(world, "also");
  caf::send_as(ahead.address, ahead.seen<state_request>().front().reply_to, state_refused{});
  world.settle();
  caf::anon_send(newcomer,
                 found{progress_key, 0, {record_of(ahead, theirs), record_of(also, theirs)}});
  world.settle();
  CHECK(also.seen<state_request>().size() == 1);
  CHECK(ahead.seen<state_request>().size() == 1);
  CHECK(world.now() < 1s);

  auto first = world.spawn<peer>(world.add_host("first"), peer_config{}, pool, directory.address);
  caf::anon_send(first, found{progress_key, 0, {}});
  caf::send_as(asks.address, first, state_request{{}, 0, asks.address});
  world.settle();
  CHECK(asks.seen<state_offer>().size() == 1);
  CHECK(world.observed<misbehaved>().empty());
}

TEST_CASE("a peer that downloads a state hands in its commits, and passes them on until the shard "
          "answers") {
  using shard = collector<sample_request, commit>;
  mini_world world;
  auto directory = add<donor>(world, "directory"), ahead = add<donor>(world, "ahead"),
       asks = add<donor>(world, "asks");
  auto data = add<shard>(world, "data");
  auto pool = std::make_shared<state_pool>(std::make_shared<no_work>());
  auto newcomer =
      world.spawn<delayed_peer>(world.add_host("newcomer"), peer_config{},
                                overlap_options{overlap::update}, pool, directory.address);
  caf::anon_send(newcomer, found{"data.shard", 1, {record{"shard-0#1", data.address, {}, 0}}});
  downloads_from(world, newcomer, ahead);
  auto state = *pool->initial();
  state.epoch = 5;
  state.id = {7, 7};
  state.samples = 100;
  auto offer = shared_object(state, 4).offer();
  // All members of the round were lost before the shard heard of it. A peer that downloaded the
  // result in time has the commit.
  offer.commits.push_back({4, {4, 4}, 1, {{77, {{10, 4}}, 1}}});
  const auto fetcher = ahead.seen<state_request>().front().reply_to;
  caf::send_as(ahead.address, fetcher, offer);
  world.settle();
  for (std::size_t i = 0; i < ahead.seen<state_chunk_request>().size(); ++i) {
    const auto asked = ahead.seen<state_chunk_request>()[i];
    caf::send_as(ahead.address, fetcher,
                 state_chunk{asked.object, asked.offset,
                             shared_object(state, 4).bytes(asked.offset, asked.count)});
    world.settle();
  }
  REQUIRE(data.seen<commit>().size() == 1);
  CHECK(data.seen<commit>().front().group == group_id{4, 4});
  const auto offered = [&] {
    caf::send_as(asks.address, newcomer, state_request{{}, 0, asks.address});
    world.settle();
    REQUIRE_FALSE(asks.seen<state_offer>().empty());
    return asks.seen<state_offer>().back().commits.size();
  };
  CHECK(offered() == 1);
  caf::send_as(data.address, newcomer, commit_received{{4, 4}});
  CHECK(offered() == 0);
  CHECK(world.observed<misbehaved>().empty());
}

TEST_CASE("a member that asks for no chunk keeps no place among the uploads") {
  mini_world world;
  const auto state = std::make_shared<const model_state>(a_state());
  state_cache cache(
      {.recent = 3, .pinned = 4, .steps = 16, .leases = 64, .uploads = 1, .lease = 10s});
  const auto object = cache.find({}, state, 64);
  const auto idle = world.spawn<donor>(world.add_host("idle"), std::make_shared<donor::log>());
  const auto other = world.spawn<donor>(world.add_host("other"), std::make_shared<donor::log>());
  CHECK(cache.admit(idle, {1, 0}, *object, false, 0s));
  CHECK(!cache.admit(other, {2, 0}, *object, false, 1s));
  // The idle one says again and again that it still wants the state.
  for (duration now = 1s; now < 10s; now += 1s)
    CHECK(cache.renew(idle, object->offer().object, now));
  CHECK(cache.admit(other, {2, 0}, *object, false, 10s));
  CHECK(cache.uploads(10s) == 1);
  CHECK(cache.renew(idle, object->offer().object, 11s)); // the lease goes on
}

TEST_CASE("a member with many actors takes one place among the uploads") {
  mini_world world;
  auto& host = world.add_host("asker");
  state_cache cache({.recent = 3, .pinned = 4, .steps = 16, .leases = 64, .uploads = 2});
  const auto current = std::make_shared<const model_state>(a_state());
  const auto object = cache.find({}, current, 4);
  const member_id greedy{7, 7}, other{8, 8};
  for (int i = 0; i < 10; ++i) {
    const auto actor = world.spawn<donor>(host, std::make_shared<donor::log>());
    CHECK(cache.admit(actor, greedy, *object, false, 1s));
  }
  CHECK(cache.uploads(1s) == 1);
  CHECK(cache.admit(world.spawn<donor>(host, std::make_shared<donor::log>()), other, *object, false,
                    1s));
  CHECK(cache.uploads(1s) == 2);
}

TEST_CASE("a peer sends states, chunks and chains only to the host that asks for them") {
  using victim_log = collector<state_offer, state_refused, state_chunk, chain_answer>;
  mini_world world;
  auto directory = add<donor>(world, "directory"), mallory = add<donor>(world, "mallory");
  auto victim = add<victim_log>(world, "victim"), asker = add<victim_log>(world, "asker");
  auto pool = std::make_shared<state_pool>(std::make_shared<no_work>());
  auto trainer =
      world.spawn<peer>(world.add_host("trainer"), peer_config{}, pool, directory.address);
  caf::anon_send(trainer, found{progress_key, 0, {}});
  world.settle();
  const auto start = pool->initial();
  const auto ask = [&](const caf::actor& from, const caf::actor& reply_to) {
    caf::send_as(from, trainer, state_request{{}, 0, reply_to});
    caf::send_as(from, trainer, state_chunk_request{start->id, 0, 64, reply_to});
    caf::send_as(from, trainer, chain_request{{{0, start->id}}, reply_to});
    caf::send_as(from, trainer, state_hold{start->id, 0, reply_to});
    world.settle();
  };
  ask(mallory.address, victim.address);
  CHECK(victim.seen<state_offer>().empty());
  CHECK(victim.seen<state_chunk>().empty());
  CHECK(victim.seen<state_refused>().empty());
  CHECK(victim.seen<chain_answer>().empty());
  CHECK(world.observed<misbehaved>().size() == 4);
  ask(asker.address, asker.address);
  CHECK(asker.seen<state_offer>().size() == 1);
  CHECK(asker.seen<state_chunk>().size() == 1);
  CHECK(asker.seen<chain_answer>().size() == 1);
  CHECK(world.observed<misbehaved>().size() == 4);
}

TEST_CASE("a chunk has at most the size in which the donor serves, however much is asked for") {
  using asker_log = collector<state_chunk>;
  mini_world world;
  auto directory = add<donor>(world, "directory");
  auto asker = add<asker_log>(world, "asker");
  auto pool = std::make_shared<state_pool>(std::make_shared<no_work>());
  peer_config options;
  options.fetch.chunk_bytes = 8; // the state has 16 bytes
  auto trainer = world.spawn<peer>(world.add_host("trainer"), options, pool, directory.address);
  caf::anon_send(trainer, found{progress_key, 0, {}});
  caf::send_as(asker.address, trainer,
               state_chunk_request{pool->initial()->id, 0, 1u << 30, asker.address});
  world.settle();
  REQUIRE(asker.seen<state_chunk>().size() == 1);
  CHECK(asker.seen<state_chunk>()[0].data.size() == 8);
}
