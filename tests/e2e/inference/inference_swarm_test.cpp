// scenarios/inference: servers, clients and the DHT over the simulated network. No death
// changes the text that the model writes alone.
#include "actors/inference/probes.hpp"
#include "scenarios/inference/inference_report.hpp"
#include "scenarios/inference/inference_swarm.hpp"
#include "tests/learn/decoder/stories.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <algorithm>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;
namespace probes = shoal::actors::inference_probes;

namespace {

using text = std::vector<learn::token_id>;

inference_swarm twice(const learn::served_model& model) {
  inference_swarm out;
  out.model = &model;
  out.servers = {{0, 2}, {2, 4}, {4, 5}, {0, 1}, {1, 3}, {3, 5}};
  out.prompt = {1};
  out.tokens = 10;
  out.downtime = 1h;
  return out;
}

inference_figures run(const inference_swarm& what) {
  auto out = run_inference_swarm(what);
  REQUIRE_MESSAGE(out.ok(), out.error());
  CHECK(out->bypassed == 0);
  CHECK(out->misbehaved == 0);
  return std::move(*out);
}

/// Runs a death at every `stride`-th time that a server reaches each point. Returns the number of
/// runs, and of those in which a server in use died.
std::pair<std::size_t, std::size_t> every_death(inference_swarm what, const text& expected,
                                                std::uint64_t stride) {
  std::size_t runs = 0, lost = 0;
  for (const auto point : probes::all)
    for (std::uint64_t at = 1;; at += stride) {
      what.deaths = {{std::string{point}, at}};
      const auto one = run(what);
      if (one.deaths == 0) break;
      CAPTURE(point);
      CAPTURE(at);
      REQUIRE(one.texts[0] == expected);
      ++runs;
      lost += one.spans_lost > 0 ? 1 : 0;
    }
  return {runs, lost};
}

} // namespace

TEST_CASE("inference: every death of a server leaves the text that the model writes alone") {
  const auto model = learn::random_served_model(5, 1);
  const auto what = twice(model);
  const auto alone = write_alone(model, what.prompt, what.tokens, what.sampling, what.seed, 1);
  CHECK(run(what).texts[0] == alone);
  const auto [runs, lost] = every_death(what, alone, 1);
  MESSAGE(runs, " deaths, ", lost, " of a server in use");
  CHECK(lost > runs / 2);
}

TEST_CASE("inference: the published text survives deaths in the simulated world") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  SHOAL_NEEDS_DATA(fixture, "oracle_vectors/stories260K_greedy.json");
  const auto model = learn::load_served_model(file, {});
  REQUIRE_MESSAGE(model.ok(), model.error());
  const auto ids = test::published(fixture)["greedy_ids"].get<text>();
  const text expected(ids.begin() + 1, ids.end());
  auto what = twice(*model);
  what.tokens = 200;
  CHECK(write_alone(*model, what.prompt, 200, what.sampling, 1, 1) == expected);
  const auto [runs, lost] =
      every_death(what, expected, std::getenv("SHOAL_NIGHTLY") != nullptr ? 1 : 97);
  MESSAGE(runs, " deaths, ", lost, " of a server in use");
}

TEST_CASE("inference: the published text comes from all 16 cuts over the simulated network") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  SHOAL_NEEDS_DATA(fixture, "oracle_vectors/stories260K_greedy.json");
  const auto model = learn::load_served_model(file, {});
  REQUIRE_MESSAGE(model.ok(), model.error());
  const auto ids = test::published(fixture)["greedy_ids"].get<text>();
  for (const auto& cut : test::all_cuts(5)) {
    auto what = twice(*model);
    what.tokens = 200;
    what.servers.clear();
    for (const auto& each : cut)
      what.servers.push_back(
          {static_cast<std::uint32_t>(each.first), static_cast<std::uint32_t>(each.last)});
    CHECK(run(what).texts[0] == text(ids.begin() + 1, ids.end()));
  }
}

TEST_CASE("inference: a run is the same again with the same seed") {
  const auto model = learn::random_served_model(5, 1);
  auto what = twice(model);
  what.lifetime = 4s;
  what.downtime = 2s;
  what.clients = 3;
  what.tokens = 40;
  const auto a = run(what), b = run(what);
  CHECK(a.texts == b.texts);
  CHECK(a.finished == b.finished);
  CHECK(a.bytes == b.bytes);
  CHECK(a.deaths == b.deaths);
  CHECK(a.deaths > 0);
  for (const auto& each : a.texts)
    CHECK(each == write_alone(model, what.prompt, 40, what.sampling, what.seed, 1));
}

TEST_CASE("inference: twenty seeds of churn leave the text of the model alone") {
  const auto model = learn::random_served_model(5, 1);
  std::uint64_t lost = 0, waits = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    auto what = twice(model);
    what.seed = seed;
    what.lifetime = 5s;
    what.downtime = 3s;
    what.tokens = 60;
    const auto one = run(what);
    REQUIRE(one.texts[0] ==
            write_alone(model, what.prompt, 60, what.sampling, what.seed, request_of(0)));
    lost += one.spans_lost;
    waits += one.waits;
  }
  MESSAGE(lost, " losses of a server in use, ", waits, " waits");
  CHECK(lost > 20);
}

TEST_CASE("inference: swarms that cannot write are refused with the reason") {
  const auto model = learn::random_served_model(5, 1);
  auto what = twice(model);
  what.servers = {{0, 2}, {3, 5}};
  CHECK(
      run_inference_swarm(what).error() ==
      "inference: no server holds layers 2:3: give some server of inference.servers these layers");
  what = twice(model);
  what.servers.push_back({4, 6});
  CHECK(run_inference_swarm(what).error() ==
        "inference: no layers 4:6: the model has the layers 0:5");
  what = twice(model);
  what.tokens = 600;
  CHECK(run_inference_swarm(what).error() ==
        "inference: 600 tokens after a prompt of 1 are more than the model's context of 512");
  CHECK(layers_of("0:2") == actors::layer_span{0, 2});
  for (const char* wrong : {"", "2", "2:2", "3:1", "a:b", "0:2x", ":2", "0:"})
    CHECK(!layers_of(wrong));
}

namespace {

/// Deaths over real sockets: every `stride`-th of a text of `tokens` tokens, at most `most` of
/// them.
void deaths_over_sockets(std::uint32_t tokens, std::uint64_t stride, std::size_t most) {
  const auto model = learn::random_served_model(5, 1);
  auto what = twice(model);
  what.real_sockets = true;
  what.tokens = tokens;
  what.sampling = {.temperature = 1};
  const auto alone = write_alone(model, what.prompt, tokens, what.sampling, what.seed, 1);
  CHECK(run(what).texts[0] == alone);
  std::size_t runs = 0, lost = 0;
  for (std::uint64_t at = 1; runs < most && at <= 3 * tokens; at += stride)
    for (const auto point : probes::all) {
      what.deaths = {{std::string{point}, at}};
      const auto one = run(what);
      CAPTURE(point);
      CAPTURE(at);
      REQUIRE(one.texts[0] == alone);
      ++runs;
      lost += one.spans_lost > 0 ? 1 : 0;
    }
  MESSAGE(runs, " deaths, ", lost, " of a server in use");
  CHECK(runs >= std::min<std::size_t>(most, 24));
  CHECK(lost > runs / 2);
}

} // namespace

TEST_CASE("inference: a sample of deaths over real sockets leaves the text") {
  deaths_over_sockets(12, 4, 24);
}

TEST_CASE("inference: a thousand deaths over real sockets leave the text") {
  SHOAL_NIGHTLY();
  deaths_over_sockets(250, 3, 1000);
}

TEST_CASE("inference: servers that choose their layers move after deaths and cut no chain") {
  const auto model = learn::random_served_model(5, 1);
  inference_swarm what;
  what.model = &model;
  what.servers = {{0, 2}, {0, 2}, {0, 2}, {0, 1}, {0, 1}, {0, 1}, {0, 2}, {0, 1}};
  what.rebalance_every = 10s;
  what.prompt = {1};
  what.tokens = 200;
  what.lifetime = 60s;
  what.downtime = 20s;
  std::uint64_t moves = 0, deaths = 0;
  double placement = 0;
  constexpr std::uint64_t seeds = 4;
  for (what.seed = 1; what.seed <= seeds; ++what.seed) {
    CAPTURE(what.seed);
    const auto alone = write_alone(model, what.prompt, what.tokens, what.sampling, what.seed, 1);
    const auto one = run(what);
    CHECK(one.texts[0] == alone);
    CHECK(one.cut == 0);
    moves += one.moves;
    deaths += one.deaths;
    placement += one.placement / seeds;
  }
  MESSAGE(deaths, " deaths, ", moves, " moves; the weakest layer had ", placement,
          " of the bound on average");
  CHECK(moves > 0);
  CHECK(placement > 0.2);

  what.servers.resize(2);
  CHECK(run_inference_swarm(what).error() ==
        "inference: the servers hold 4 layers in all, and the model has 5: add servers, or layers "
        "to inference.servers");
}

TEST_CASE("inference: servers that push outputs save half of the round trips") {
  const auto model = learn::random_served_model(5, 1);
  inference_swarm what;
  what.model = &model;
  what.servers = {{0, 1}, {1, 3}, {3, 5}};
  what.prompt = {1};
  what.tokens = 40;
  const auto direct = run(what);
  what.push = true;
  const auto pushed = run(what);
  CHECK(pushed.texts[0] == direct.texts[0]);
  const auto per_token = [&](const inference_figures& of) {
    return to_seconds(of.finished[0] - of.first[0]) / (what.tokens - 1);
  };
  // Three round trips of 50 ms become four ways of 25 ms. Each of 5 layers takes 1 ms.
  MESSAGE(per_token(direct), " s for each token, ", per_token(pushed), " s with pushes");
  CHECK(per_token(direct) == doctest::Approx(0.155).epsilon(0.02));
  CHECK(per_token(pushed) == doctest::Approx(0.105).epsilon(0.02));
}

TEST_CASE("inference: with pushes every death of a server leaves the text") {
  const auto model = learn::random_served_model(5, 1);
  auto what = twice(model);
  what.push = true;
  const auto alone = write_alone(model, what.prompt, what.tokens, what.sampling, what.seed, 1);
  CHECK(run(what).texts[0] == alone);
  const auto [runs, lost] = every_death(what, alone, 1);
  MESSAGE(runs, " deaths, ", lost, " of a server in use");
  CHECK(lost > runs / 2);
  what.lifetime = 20s;
  what.downtime = 5s;
  what.tokens = 100;
  const auto longer = write_alone(model, what.prompt, what.tokens, what.sampling, what.seed, 1);
  for (what.seed = 1; what.seed <= 10; ++what.seed) CHECK(run(what).texts[0] == longer);
}
