// actors/inference/layer_move: servers that move at once, with messages that are late or lost and
// records that are old.
#include "actors/inference/layer_move.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace std::chrono_literals;

namespace {

struct mover {
  layer_span layers;
  layer_move move;
};

/// A message in flight.
struct message {
  std::size_t from = 0, to = 0;
  std::uint64_t round = 0;
  bool is_answer = false;
  layer_span layers; ///< in an answer
};

bool holds(const std::vector<mover>& all, std::uint32_t layer) {
  return std::any_of(all.begin(), all.end(), [&](const mover& each) {
    return each.layers.first <= layer && layer < each.layers.last;
  });
}

} // namespace

TEST_CASE("layer move: a server moves once each of its layers is promised by somebody") {
  layer_move move;
  const std::vector<placed_server> others{{2, {0, 3}, 1}, {3, {3, 5}, 1}, {4, {5, 6}, 1}};
  CHECK(move.begin({2, 4}, {5, 7}, others, 10s) == std::vector<peer_id>{2, 3});
  CHECK(!move.due(10s));
  CHECK(move.promised(2, move.round(), {0, 3}));
  CHECK(!move.due(11s));
  CHECK(!move.promised(4, move.round(), {2, 4}));     // nobody asked that server
  CHECK(!move.promised(3, move.round() + 1, {2, 4})); // another question
  CHECK(move.promised(3, move.round(), {3, 5}));
  CHECK(move.due(15s) == layer_span{5, 7});
  CHECK(!move.due(15s + 1ns)); // too late: promises may end
  move.end();
  CHECK(move.may_begin(16s));
}

TEST_CASE("layer move: a server that has promised stays, and one that asks promises nothing") {
  layer_move move({.timeout = 5s, .promise = 15s});
  CHECK(move.promise({1, 1}, 1s));
  CHECK(move.promise({2, 2}, 2s));
  CHECK(!move.may_begin(16s));
  CHECK(move.may_begin(17s));
  static_cast<void>(move.begin({0, 1}, {1, 2}, {}, 17s));
  CHECK(!move.promise({3, 3}, 18s));
  CHECK(!move.due(18s)); // nobody else holds the layer
  move.end();
  CHECK(move.promise({3, 3}, 19s));
}

TEST_CASE("layer move: a member that asks all the time does not pin a server") {
  layer_move move({.timeout = 5s, .promise = 15s});
  int promises = 0;
  duration free{};
  for (duration now = 0s; now < 1h; now += 1s) {
    promises += move.promise({7, 7}, now) ? 1 : 0;
    free += move.may_begin(now) ? duration(1s) : duration{};
  }
  CHECK(promises == 7); // after 30, 60, 120, 240, 480 and 960 seconds
  CHECK(free > 57min);
  // Others have their own promises.
  CHECK(move.promise({1, 1}, 1h));
}

TEST_CASE("layer move: no schedule of moves takes the last server of a layer") {
  constexpr std::uint32_t layers = 6;
  std::uint64_t moves = 0, asked = 0, crossed = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    auto random = stream(seed, "layer_move");
    std::vector<mover> all(4 + random.below(4));
    const auto any_window = [&] {
      const auto count = static_cast<std::uint32_t>(1 + random.below(4));
      const auto first = static_cast<std::uint32_t>(random.below(layers - count + 1));
      return layer_span{first, first + count};
    };
    for (auto& each : all) each.layers = any_window();
    // The servers' beliefs about each other, which may be wrong.
    std::vector<placed_server> records;
    for (std::size_t i = 0; i < all.size(); ++i) records.push_back({i, all[i].layers, 1});
    std::multimap<duration, message> flying;
    for (duration now{}; now < 200s; now += 500ms) {
      while (!flying.empty() && flying.begin()->first <= now) {
        const auto m = flying.extract(flying.begin()).mapped();
        auto& me = all[m.to];
        if (m.is_answer) {
          me.move.promised(m.from, m.round, m.layers);
          if (const auto to = me.move.due(now)) {
            const auto from = std::exchange(me.layers, *to);
            me.move.end();
            ++moves;
            for (auto l = from.first; l < from.last; ++l) REQUIRE(holds(all, l));
          }
        } else if (me.move.promise({m.from, 0}, now)) {
          if (random.below(5) > 0)
            flying.emplace(now + 1ms * random.below(7000),
                           message{m.to, m.from, m.round, true, me.layers});
        } else {
          ++crossed;
        }
      }
      for (std::size_t i = 0; i < all.size(); ++i) {
        auto& me = all[i];
        if (random.below(8) == 0) records[i].layers = me.layers;
        if (me.move.is_under_way() && random.below(12) == 0) me.move.end();
        if (!me.move.may_begin(now) || random.below(10) > 0) continue;
        std::vector<placed_server> others;
        for (const auto& each : records)
          if (each.peer != i) others.push_back(each);
        ++asked;
        for (const auto whom : me.move.begin(me.layers, any_window(), others, now))
          flying.emplace(now + 1ms * random.below(3000),
                         message{i, static_cast<std::size_t>(whom), me.move.round(), false, {}});
      }
    }
  }
  MESSAGE(asked, " servers asked, ", crossed, " questions met another move, ", moves, " moves");
  CHECK(moves > 1000);
  CHECK(crossed > 1000);
}
