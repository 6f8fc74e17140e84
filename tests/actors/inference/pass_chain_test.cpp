#include "actors/inference/pass_chain.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

using namespace shoal;
using namespace shoal::actors;

namespace {

// Layer i maps x to a(i) x + b(i), and its prompt's gradient is the gradient of its input.
float scale(std::uint32_t layer) {
  return 1 + 0.5F * static_cast<float>(layer % 3);
}
std::vector<float> run(layer_span layers, std::vector<float> x) {
  for (auto i = layers.first; i < layers.last; ++i)
    for (auto& each : x) each = scale(i) * each + static_cast<float>(i);
  return x;
}

} // namespace

TEST_CASE("pass chain: losses at random times leave output and gradients as they are") {
  const std::vector<float> input{1, -2}, slopes{0.5F, 3};
  const layer_span all{1, 7};
  const auto expected = run(all, input);
  std::uint64_t losses = 0, repeated = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    auto random = stream(seed, "pass_chain");
    pass_chain chain(all, input, input.size());
    std::vector<float> prompts;
    peer_id next_server = 1;
    std::uint64_t token = 0, deaths = 0;
    for (bool over = false; !over;) {
      const auto now = chain.next();
      if (const auto* open = std::get_if<pass_chain::needs_route>(&now)) {
        // Each route has random cuts, and servers that nobody has used before.
        std::vector<route_hop> route;
        for (auto at = open->layers.first; at < open->layers.last;) {
          const auto last =
              at + 1 + static_cast<std::uint32_t>(random.below(open->layers.last - at));
          route.push_back({next_server++, {at, last}});
          at = last;
        }
        chain.routed(open->layers, route);
      } else if (const auto* request = std::get_if<pass_chain::request>(&now)) {
        std::vector<float> answer, of_prompts;
        if (request->gradient.empty()) {
          answer = run(request->layers, {request->input.begin(), request->input.end()});
        } else {
          answer.assign(request->gradient.begin(), request->gradient.end());
          of_prompts.resize(request->layers.count() * answer.size());
          for (auto i = request->layers.last; i-- > request->layers.first;)
            for (std::size_t j = 0; j < answer.size(); ++j) {
              answer[j] *= scale(i);
              of_prompts[(i - request->layers.first) * answer.size() + j] = answer[j];
            }
        }
        chain.sent(++token);
        CHECK(std::holds_alternative<pass_chain::waits>(chain.next()));
        CHECK(!chain.answered(token + 1, answer, of_prompts));
        if (deaths < 20 && random.below(4) == 0) {
          CHECK(chain.lost_request(token).has_value());
          ++deaths;
        } else {
          CHECK(chain.answered(token, std::move(answer), of_prompts));
          // A server that is not in use now dies, too.
          if (deaths < 20 && random.below(4) == 0)
            deaths += chain.lost(1 + random.below(next_server - 1)) ? 1 : 0;
        }
      } else if (!chain.goes_back()) {
        CHECK(chain.output() == expected);
        chain.back(slopes);
      } else {
        over = true;
      }
    }
    auto g = slopes;
    for (auto i = all.last; i-- > all.first;)
      for (std::size_t j = 0; j < g.size(); ++j) {
        g[j] *= scale(i);
        CHECK(chain.prompt_gradient()[(i - all.first) * g.size() + j] == g[j]);
      }
    CHECK(chain.gradient() == g);
    losses += deaths;
    repeated += chain.repeated();
    if (deaths == 0) CHECK(chain.repeated() == 0);
  }
  CHECK(losses > 300);
  CHECK(repeated > 300);
}
