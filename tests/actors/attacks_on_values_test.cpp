// Attacks on the numbers of training: their values, their times, and the knowledge of colluders.
#include "actors/averaging/round.hpp"
#include "actors/conduct/attacks_on_values.hpp"
#include "actors/conduct/conducts.hpp"
#include "actors/training/workload.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

conduct_options attack_options(std::string kind, double strength = 1) {
  conduct_options out;
  out.kind = std::move(kind);
  out.strength = strength;
  return out;
}

std::vector<float> sent(conduct& by, std::uint64_t epoch, std::vector<float> own,
                        std::size_t others = 0) {
  payload values{std::move(own)};
  round_request request;
  request.epoch = epoch;
  request.weight = 3;
  request.expected.resize(others);
  by.contribute(values, request);
  return {values.floats().begin(), values.floats().end()};
}

/// A workload with a gradient of 1, or of 2 with wrong labels.
struct labelled final : workload {
  double label = 1;
  std::uint64_t value_count() const override { return 1; }
  std::uint64_t sample_bytes() const override { return 1; }
  model_state initial() const override { return {}; }
  double accumulate(const model_state&, std::span<const std::byte>, std::uint64_t,
                    std::span<double> sum) const override {
    sum[0] += label;
    return 0;
  }
  model_state step(const model_state& at, const payload&) const override { return at; }
  std::shared_ptr<const workload> mislabelled() const override {
    auto out = std::make_shared<labelled>();
    out->label = 2;
    return out;
  }
};

double gradient_of(conduct& by, const workload& honest, std::uint64_t epoch) {
  double out = 0;
  by.learns_by(honest, epoch).accumulate({}, {}, 1, {&out, 1});
  return out;
}

using floats = std::vector<float>;

} // namespace

TEST_CASE("an attack on values begins at its epoch and strikes in every so many epochs") {
  mini_world world;
  auto how = attack_options("flipped_signs", 2);
  how.from_epoch = 30;
  how.every_epochs = 10;
  const auto by = make_conduct(how, world.add_host("mallory"));
  for (std::uint64_t epoch = 0; epoch < 60; ++epoch) {
    CAPTURE(epoch);
    const bool strikes = epoch == 30 || epoch == 40 || epoch == 50;
    CHECK(sent(*by, epoch, {1, -3}) == (strikes ? floats{-2, 6} : floats{1, -3}));
    // A second round of the epoch is attacked, too.
    CHECK(sent(*by, epoch, {5}) == (strikes ? floats{-10} : floats{5}));
  }
}

TEST_CASE("flipped labels change the gradient in the epochs of the attack alone") {
  mini_world world;
  auto how = attack_options("flipped_labels");
  how.from_epoch = 4;
  const auto by = make_conduct(how, world.add_host("mallory"));
  const labelled honest;
  CHECK(gradient_of(*by, honest, 3) == 1);
  CHECK(gradient_of(*by, honest, 4) == 2);
  CHECK(gradient_of(*honest_conduct(), honest, 4) == 1);
}

TEST_CASE("a delayed gradient is the one of so many epochs ago or the oldest") {
  mini_world world;
  auto how = attack_options("delayed_gradients", 3);
  how.from_epoch = 2;
  const auto by = make_conduct(how, world.add_host("mallory"));
  const float expected[] = {0, 1, 0, 0, 1, 2, 3, 4};
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch)
    CHECK(sent(*by, epoch, {static_cast<float>(epoch)}) == floats{expected[epoch]});
}

TEST_CASE("colluders send one vector, minus a share of the mean that they know") {
  mini_world world;
  auto how = attack_options("inner_product_manipulation", 0.5);
  how.from_epoch = 1;
  how.with = std::make_shared<collusion>();
  const auto a = make_conduct(how, world.add_host("a")), b = make_conduct(how, world.add_host("b"));
  CHECK(sent(*a, 0, {1, 2}) == floats{1, 2});
  CHECK(sent(*b, 0, {3, 6}) == floats{3, 6});
  // The first one in epoch 1 knows its own new contribution and the other's last one.
  CHECK(sent(*a, 1, {5, 2}) == floats{-2, -2});
  CHECK(sent(*b, 1, {100, 100}) == floats{-2, -2});
  CHECK(how.with->attackers(1) == 2);
  CHECK(how.with->attackers(9) == 0);
}

TEST_CASE("attackers that know everybody use the mean of the honest members") {
  mini_world world;
  auto how = attack_options("inner_product_manipulation", 1);
  how.with = std::make_shared<collusion>();
  how.knows = attacker_knowledge::everybody;
  const auto attacker = make_conduct(how, world.add_host("mallory"));
  watched_host x(world.add_host("x"), {how.with}), y(world.add_host("y"), {how.with});
  CHECK(sent(x, 7, {2, 4}) == floats{2, 4});
  CHECK(sent(y, 7, {4, 8}) == floats{4, 8});
  CHECK(sent(*attacker, 7, {1000, 1000}) == floats{-3, -6});
}

TEST_CASE("ALIE stays within as many deviations as leave it a majority") {
  // n = 16, b = 7: two more supporters are needed, of nine honest members.
  CHECK(alie_deviations(16, 7) == doctest::Approx(0.7647).epsilon(1e-4));
  CHECK(alie_deviations(16, 9) == 0);
  CHECK(alie_deviations(2, 1) == 0);

  mini_world world;
  auto how = attack_options("little_is_enough");
  how.with = std::make_shared<collusion>();
  how.knows = attacker_knowledge::everybody;
  std::vector<std::shared_ptr<conduct>> attackers;
  for (int i = 0; i < 7; ++i)
    attackers.push_back(make_conduct(how, world.add_host("m" + std::to_string(i))));
  for (int i = 0; i < 9; ++i) {
    watched_host honest(world.add_host("h" + std::to_string(i)), {how.with});
    sent(honest, 1, {static_cast<float>(i), 5});
  }
  // All seven are known once each has contributed; then they decide with z(16, 7).
  for (auto& one : attackers) sent(*one, 1, {0, 0}, 15);
  for (int i = 0; i < 9; ++i) {
    watched_host honest(world.add_host("k" + std::to_string(i)), {how.with});
    sent(honest, 2, {static_cast<float>(i), 5});
  }
  const auto got = sent(*attackers.front(), 2, {0, 0}, 15);
  // Mean 4 and deviation sqrt(20 / 3) of 0 to 8.
  CHECK(got[0] == doctest::Approx(4 - 0.76471 * std::sqrt(20.0 / 3)).epsilon(1e-4));
  CHECK(got[1] == doctest::Approx(5));
}

TEST_CASE("attacks on values leave sizes and members of weight zero alone") {
  mini_world world;
  for (const auto* kind : {"delayed_gradients", "inner_product_manipulation", "little_is_enough"}) {
    const auto by = make_conduct(attack_options(kind), world.add_host(kind));
    auto values = payload::size_only(8);
    round_request request;
    request.weight = 1;
    by->contribute(values, request);
    CHECK(values.is_size_only());
    request.weight = 0;
    payload floats{std::vector<float>{1, 2}};
    by->contribute(floats, request);
    CHECK(floats.floats()[1] == 2);
  }
}
