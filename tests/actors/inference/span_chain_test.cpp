// actors/inference/span_chain alone, with servers that are functions. A server remembers what a
// session sent. Its output is a hash of the whole prefix, so a lost or repeated token would show.
#include "actors/inference/span_chain.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>

using namespace shoal;
using namespace shoal::actors;

namespace {

constexpr std::uint32_t layers = 5;
constexpr std::size_t width = 2;

/// The output of a layer for a token depends on all tokens up to it.
std::vector<float> layer_output(std::uint32_t layer, std::vector<float>& state,
                                const std::vector<float>& in) {
  std::vector<float> out(width);
  for (std::size_t i = 0; i < width; ++i) {
    state[i] = std::fmod(state[i] * 3 + in[i] * 7 + static_cast<float>(layer + 1), 1021.F);
    out[i] = state[i];
  }
  return out;
}

/// Servers by peer id. Each has the tokens of its sessions.
struct swarm {
  std::map<peer_id, layer_span> alive;
  std::map<std::pair<peer_id, std::uint64_t>, std::vector<std::vector<float>>> sessions;

  std::vector<server_view> views() const {
    std::vector<server_view> out;
    for (const auto& [peer, span] : alive) out.push_back({peer, span, 0.1, 0.01, 1 << 20});
    return out;
  }
  std::vector<float> compute(const span_chain::request& step) {
    REQUIRE(alive.contains(step.server));
    const auto held = alive[step.server];
    REQUIRE(held.first <= step.layers.first);
    REQUIRE(step.layers.last <= held.last);
    auto& tokens = sessions[{step.server, step.session}];
    REQUIRE(step.from <= tokens.size());
    tokens.resize(step.from);
    for (std::size_t t = 0; t < step.time; ++t)
      tokens.emplace_back(step.activations.begin() + static_cast<std::ptrdiff_t>(t * width),
                          step.activations.begin() + static_cast<std::ptrdiff_t>((t + 1) * width));
    std::vector<float> out;
    std::vector<std::vector<float>> x = tokens;
    for (auto layer = step.layers.first; layer < step.layers.last; ++layer) {
      std::vector<float> state(width);
      for (auto& token : x) token = layer_output(layer, state, token);
    }
    for (auto t = step.from; t < x.size(); ++t) out.insert(out.end(), x[t].begin(), x[t].end());
    return out;
  }
};

/// The outputs of `count` tokens, each fed after the last one's output, with `strike` called before
/// each request with its number. It may kill servers, and says whether the request's answer is
/// lost.
struct writer {
  swarm& of;
  std::function<bool(std::size_t, const span_chain::request&)> strike = {};
  std::size_t requests = 0;
  std::uint64_t names = 1, replayed = 0;

  std::vector<float> write(std::size_t count) {
    span_chain chain(layers, 1, count + 3, width);
    chain.feed(std::vector<float>{1, 2, 3, 4, 5, 6}); // a prompt of three tokens
    std::vector<float> out;
    while (out.size() < count * width) {
      auto next = chain.next();
      if (const auto* open = std::get_if<span_chain::needs_route>(&next)) {
        const auto route = fastest_route(of.views(), open->layers, 1);
        REQUIRE(!route.empty());
        std::vector<std::uint64_t> sessions;
        for (std::size_t i = 0; i < route.size(); ++i) sessions.push_back(names++);
        chain.routed(open->layers, route, sessions);
      } else if (const auto* step = std::get_if<span_chain::request>(&next)) {
        chain.sent(*step, ++requests);
        const bool lost = strike && strike(requests, *step);
        for (const auto& each : chain.holders())
          if (each.server && !of.alive.contains(*each.server)) chain.lost(*each.server);
        if (!lost && of.alive.contains(step->server)) {
          CHECK(chain.answered(requests, of.compute(*step)));
          CHECK(!chain.answered(requests, {})); // a repeated answer changes nothing
        } else {
          chain.lost_request(requests);
        }
      } else {
        REQUIRE(std::holds_alternative<span_chain::done>(next));
        const auto last = chain.take(1);
        out.insert(out.end(), last.begin(), last.end());
        if (out.size() < count * width) chain.feed(last);
      }
    }
    replayed = chain.replayed();
    return out;
  }
};

swarm two_of_each() {
  swarm out;
  out.alive = {{1, {0, 2}}, {2, {2, 4}}, {3, {4, 5}}, {4, {0, 1}}, {5, {1, 3}}, {6, {3, 5}}};
  return out;
}

} // namespace

TEST_CASE("any server's death at any request leaves the same outputs") {
  constexpr std::size_t tokens = 12;
  auto calm = two_of_each();
  writer undisturbed{calm};
  const auto expected = undisturbed.write(tokens);
  const auto requests = undisturbed.requests;
  CHECK(undisturbed.replayed == 0);
  std::size_t runs = 0, replayed = 0;
  for (std::size_t at = 1; at <= requests; ++at)
    for (peer_id victim = 1; victim <= 6; ++victim)
      for (const bool answer_lost : {false, true}) {
        CAPTURE(at);
        CAPTURE(victim);
        auto servers = two_of_each();
        writer one{servers, [&](std::size_t number, const span_chain::request& step) {
                     if (number != at) return false;
                     servers.alive.erase(victim);
                     return answer_lost || step.server == victim;
                   }};
        CHECK(one.write(tokens) == expected);
        replayed += one.replayed > 0 ? 1 : 0;
        ++runs;
      }
  MESSAGE(runs, " runs, ", replayed, " with a replay");
  CHECK(replayed > runs / 4);
}

TEST_CASE("pairs of deaths leave the same outputs while each layer has a server") {
  constexpr std::size_t tokens = 5;
  auto calm = two_of_each();
  writer undisturbed{calm};
  const auto expected = undisturbed.write(tokens);
  const auto requests = undisturbed.requests;
  std::size_t runs = 0;
  for (std::size_t first = 1; first <= requests; ++first)
    for (std::size_t second = first; second <= requests + 4; ++second)
      for (peer_id a = 1; a <= 6; ++a)
        for (peer_id b = 1; b <= 6; ++b) {
          auto after = two_of_each();
          after.alive.erase(a);
          after.alive.erase(b);
          if (a == b || uncovered(after.views(), {0, layers})) continue;
          auto servers = two_of_each();
          writer one{servers, [&](std::size_t number, const span_chain::request&) {
                       if (number == first) servers.alive.erase(a);
                       if (number == second) servers.alive.erase(b);
                       return false;
                     }};
          REQUIRE(one.write(tokens) == expected);
          ++runs;
        }
  MESSAGE(runs, " runs");
  CHECK(runs > 1000);
}

TEST_CASE("only the span of a lost server is computed again") {
  auto servers = two_of_each();
  servers.alive = {{1, {0, 2}}, {2, {2, 4}}, {3, {4, 5}}, {7, {2, 4}}};
  peer_id held = 0;
  writer one{servers, [&](std::size_t number, const span_chain::request& step) {
               if (step.layers.first == 2 && number < 12) held = step.server;
               if (number == 12) servers.alive.erase(held);
               return false;
             }};
  one.write(10);
  // Request 12 is the last span's for the fourth token: that span has 3 + 3 tokens of 2 layers.
  CHECK(one.replayed == 6 * 2);
}

TEST_CASE("a rollback takes the same way as a session that never went further") {
  auto servers = two_of_each();
  std::uint64_t names = 1, requests = 0;
  const auto run = [&](span_chain& chain) {
    for (;;) {
      auto next = chain.next();
      if (const auto* open = std::get_if<span_chain::needs_route>(&next)) {
        const auto route = fastest_route(servers.views(), open->layers, 1);
        std::vector<std::uint64_t> sessions;
        for (std::size_t i = 0; i < route.size(); ++i) sessions.push_back(names++);
        chain.routed(open->layers, route, sessions);
      } else if (const auto* step = std::get_if<span_chain::request>(&next)) {
        chain.sent(*step, ++requests);
        REQUIRE(chain.answered(requests, servers.compute(*step)));
      } else {
        return;
      }
    }
  };
  span_chain straight(layers, 1, 8, width), winding(layers, 1, 8, width);
  straight.feed(std::vector<float>{1, 2, 3, 4});
  run(straight);
  straight.take(1);
  winding.feed(std::vector<float>{1, 2, 9, 9, 8, 8});
  run(winding);
  winding.take(1);
  winding.rollback(1);
  winding.feed(std::vector<float>{3, 4});
  run(winding);
  winding.take(1);
  straight.feed(std::vector<float>{5, 6});
  winding.feed(std::vector<float>{5, 6});
  run(straight);
  run(winding);
  CHECK(straight.take(1) == winding.take(1));
  CHECK(winding.length() == 3);
  // A loss after the rollback replays the tokens that count.
  servers.alive.erase(1);
  for (auto* chain : {&straight, &winding}) {
    chain->lost(1);
    chain->feed(std::vector<float>{7, 8});
    run(*chain);
  }
  CHECK(straight.take(1) == winding.take(1));
}

TEST_CASE("answers of another size and late answers change nothing") {
  span_chain chain(layers, 1, 4, width);
  chain.feed(std::vector<float>{1, 2});
  const route_hop hop{1, {0, layers}};
  const std::uint64_t session = 9;
  chain.routed({0, layers}, {&hop, 1}, {&session, 1});
  const auto step = std::get<span_chain::request>(chain.next());
  chain.sent(step, 1);
  CHECK(!chain.answered(2, std::vector<float>{1, 2}));
  CHECK(!chain.answered(1, std::vector<float>{1}));
  CHECK(std::holds_alternative<span_chain::waits>(chain.next()));
  CHECK(chain.lost_request(2) == std::nullopt);
  CHECK(chain.lost_request(1) == span_chain::lost_span{1, 9});
  CHECK(!chain.answered(1, std::vector<float>{1, 2}));
  CHECK(std::holds_alternative<span_chain::needs_route>(chain.next()));
  CHECK(chain.history_bytes() == width * sizeof(float));
}
