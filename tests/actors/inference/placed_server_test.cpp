// actors/inference/inference_server with a placement: servers that choose and change their layers.
#include "tests/actors/inference/inference_lab.hpp"

#include <algorithm>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t layers = 5;

/// Follows the layers of the servers, and checks that no move takes the last server of a layer.
class chain_watch {
public:
  explicit chain_watch(inference_lab& lab, std::vector<layer_span> fixed = {})
      : lab_(lab), fixed_(std::move(fixed)) {}

  void look() {
    const auto all = lab_.world.observed<layers_taken>();
    for (; seen_ < all.size(); ++seen_) {
      const auto& [host, taken] = all[seen_];
      held_[host] = taken.layers;
      moves_ += taken.before.count() > 0 ? 1 : 0;
      for (auto l = taken.before.first; l < taken.before.last; ++l) CHECK(servers_of(l) > 0);
    }
  }
  /// Call look() before.
  void died(peer_id host) { held_.erase(host); }
  std::size_t servers_of(std::uint32_t layer) const {
    const auto has = [layer](layer_span each) { return each.first <= layer && layer < each.last; };
    return static_cast<std::size_t>(
        std::count_if(fixed_.begin(), fixed_.end(), has) +
        std::count_if(held_.begin(), held_.end(), [&](const auto& e) { return has(e.second); }));
  }
  std::size_t missing() const {
    std::size_t out = 0;
    for (std::uint32_t l = 0; l < layers; ++l) out += servers_of(l) == 0 ? 1 : 0;
    return out;
  }
  std::size_t moves() const { return moves_; }

private:
  inference_lab& lab_;
  std::vector<layer_span> fixed_;
  std::map<peer_id, layer_span> held_;
  std::size_t seen_ = 0, moves_ = 0;
};

} // namespace

TEST_CASE("placed servers cover the model and write its text") {
  const auto model = random_model();
  inference_lab fixed(model);
  fixed.add_server({0, 5});
  fixed.add_client();
  const auto expected = fixed.write({1, 2}, 10);
  REQUIRE(expected.size() == 10);

  inference_lab lab(model);
  for (const std::uint32_t count : {2U, 2U, 2U}) lab.add_placed_server(count);
  lab.world.run_for(5s);
  chain_watch watch(lab);
  watch.look();
  CHECK(watch.missing() == 0);
  lab.add_client();
  CHECK(lab.write({1, 2}, 10) == expected);
}

TEST_CASE("a placed server moves to layers whose server has died and its client goes on") {
  const auto model = random_model();
  inference_lab fixed(model);
  fixed.add_server({0, 5});
  fixed.add_client();
  const auto expected = fixed.write({1, 2}, 40);

  inference_lab lab(model);
  lab.add_server({0, 3});
  auto& mortal = lab.add_server({3, 5});
  lab.add_placed_server(2);
  lab.world.run_for(5s);
  lab.add_placed_server(2);
  lab.world.run_for(5s);
  chain_watch watch(lab, {{0, 3}});
  watch.look();
  const auto covered = watch.missing() == 0;
  lab.add_client();
  lab.ask({1, 2}, 40);
  lab.world.run_for(20ms);
  mortal.kill();
  lab.world.run_for(10min);
  REQUIRE(lab.answers().size() == 1);
  CHECK(lab.answers()[0].tokens == expected);
  watch.look();
  CHECK(watch.missing() == 0);
  CHECK((covered || watch.moves() > 0));
}

TEST_CASE("placed servers move after deaths and no move cuts the chain") {
  const auto model = random_model();
  std::size_t moves = 0, whole = 0, deaths = 0;
  constexpr std::uint64_t swarms = 20;
  for (std::uint64_t seed = 1; seed <= swarms; ++seed) {
    CAPTURE(seed);
    inference_lab lab(model, seed);
    auto random = stream(seed, "placed_servers");
    for (int i = 0; i < 8; ++i)
      lab.add_placed_server(static_cast<std::uint32_t>(1 + random.below(2)),
                            1ms * (1 + random.below(4)));
    chain_watch watch(lab);
    lab.world.run_for(10s);
    for (std::size_t death = 0; death < 3; ++death) {
      auto* victim = lab.servers[random.below(lab.servers.size())];
      lab.world.run_for(1s * (60 + random.below(60)));
      watch.look();
      if (victim->alive()) ++deaths;
      victim->kill();
      watch.died(victim->id());
    }
    lab.world.run_for(10min);
    watch.look();
    moves += watch.moves();
    whole += watch.missing() == 0 ? 1 : 0;
  }
  MESSAGE(deaths, " deaths, ", moves, " moves; ", whole, " of ", swarms, " swarms have all layers");
  CHECK(moves > swarms);
  CHECK(whole == swarms);
}
