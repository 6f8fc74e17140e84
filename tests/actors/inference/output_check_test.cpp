// Two servers that agree decide which others compute wrongly.
#include "actors/inference/output_check.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

using namespace shoal;
using namespace shoal::actors;

namespace {

constexpr std::size_t width = 2;
using verdict = output_check::verdict;

/// Servers that double each value; liars add an error from some token on.
struct servers {
  std::map<peer_id, std::size_t> liars;
  std::vector<float> compute(peer_id who, std::vector<float> in, std::size_t layers) const {
    for (std::size_t i = 0; i < layers; ++i)
      for (auto& x : in) x *= 2;
    if (const auto lie = liars.find(who); lie != liars.end())
      for (auto i = lie->second * width; i < in.size(); ++i) in[i] += static_cast<float>(who);
    return in;
  }
};

struct outcome {
  output_check::done done;
  std::size_t passes = 0;
};

/// Checks a session of layers 0:1 by server 1 and 1:3 by server 2; `others` offer all layers.
outcome check(const servers& all, std::vector<peer_id> others, std::size_t since = 0) {
  const std::vector<float> prompt{1, 2, 3, 4, 5, 6};
  const auto between = all.compute(1, prompt, 1);
  output_check checks({{{0, 1}, 1, since, prompt, between},
                       {{1, 3}, 2, since, between, all.compute(2, between, 2)}},
                      width, 1e-3);
  outcome out;
  for (;;) {
    const auto next = checks.next();
    if (const auto* open = std::get_if<output_check::needs_route>(&next)) {
      std::vector<peer_id> left;
      for (const auto each : others)
        if (!open->except.contains(each)) left.push_back(each);
      if (left.empty()) {
        checks.unroutable();
        continue;
      }
      const std::vector<route_hop> route{{left.front(), open->layers}};
      checks.routed(route);
    } else if (const auto* request = std::get_if<output_check::request>(&next)) {
      ++out.passes;
      checks.sent(out.passes);
      CHECK(std::holds_alternative<output_check::waits>(checks.next()));
      CHECK(checks.asked(out.passes) == request->server);
      CHECK_FALSE(checks.answered(out.passes + 1, request->activations));
      CHECK_FALSE(checks.answered(out.passes, {}));
      CHECK(checks.answered(
          out.passes, all.compute(request->server, request->activations, request->layers.count())));
    } else {
      out.done = std::get<output_check::done>(next);
      return out;
    }
  }
}

} // namespace

TEST_CASE("output check: honest servers agree after one pass for each span") {
  const auto out = check({}, {3, 4});
  CHECK(out.done.found == verdict::right);
  CHECK(out.done.unchecked == 0);
  CHECK(out.passes == 2);
}

TEST_CASE("output check: a server that lies from a token on is found with that token") {
  for (const peer_id liar : {1, 2})
    for (const std::size_t from : {0, 1, 2}) {
      CAPTURE(liar);
      CAPTURE(from);
      const auto out = check({{{liar, from}}}, {3, 4});
      CHECK(out.done.found == verdict::wrong);
      CHECK(out.done.servers == std::set<peer_id>{liar});
      REQUIRE(out.done.from.has_value());
      CHECK(out.done.from->span == liar - 1);
      CHECK(out.done.from->token == from);
      CHECK(out.passes == (liar == 1 ? 2 : 3));
    }
}

TEST_CASE("output check: a server that lies about another one is found instead") {
  const auto out = check({{{3, 0}}}, {3, 4});
  CHECK(out.done.found == verdict::wrong);
  CHECK(out.done.servers == std::set<peer_id>{3});
  CHECK_FALSE(out.done.from.has_value());
}

TEST_CASE("output check: an error of an earlier server blames nobody who is there now") {
  const auto out = check({{{1, 1}}}, {3, 4}, 2);
  CHECK(out.done.found == verdict::wrong);
  CHECK(out.done.servers.empty());
  CHECK(out.done.from->token == 1);
}

TEST_CASE("output check: without a third server nobody is blamed") {
  const auto out = check({{{1, 0}}}, {3});
  CHECK(out.done.found == verdict::disputed);
  CHECK(out.done.servers.empty());
  // Two liars with different errors, and one honest server beside them.
  CHECK(check({{{1, 0}, {3, 0}}}, {3, 4}).done.found == verdict::disputed);
}

TEST_CASE("output check: the first two that agree decide about all others") {
  auto out = check({{{1, 0}, {3, 0}, {4, 1}}}, {3, 4, 5, 6});
  CHECK(out.done.found == verdict::wrong);
  CHECK(out.done.servers == std::set<peer_id>{1, 3, 4});
  CHECK(out.done.from->token == 0);
  CHECK(out.passes == 4);
  out = check({{{3, 0}, {4, 1}}}, {3, 4, 5});
  CHECK(out.done.servers == std::set<peer_id>{3, 4});
  CHECK_FALSE(out.done.from.has_value());
}

TEST_CASE("output check: spans that no other server holds stay unchecked") {
  const auto out = check({{{1, 0}}}, {});
  CHECK(out.done.found == verdict::right);
  CHECK(out.done.unchecked == 2);
  CHECK(out.passes == 0);
}

TEST_CASE("output check: a pass over two servers begins anew when one of them is lost") {
  const servers all;
  const std::vector<float> in{1, 2};
  output_check checks({{{0, 2}, 1, 0, in, all.compute(1, in, 2)}}, width, 1e-3);
  const std::vector<route_hop> first{{2, {0, 1}}, {3, {1, 2}}};
  checks.routed(first);
  checks.sent(1);
  CHECK(checks.answered(1, all.compute(2, in, 1)));
  const auto next = checks.next();
  CHECK(std::get<output_check::request>(next).server == 3);
  CHECK(std::get<output_check::request>(next).activations == all.compute(2, in, 1));
  checks.sent(2);
  CHECK_FALSE(checks.lost(9));
  CHECK(checks.lost(3));
  CHECK_FALSE(checks.answered(2, all.compute(3, in, 2)));
  CHECK(std::holds_alternative<output_check::needs_route>(checks.next()));
}

TEST_CASE("output check: values within the tolerance agree, and a NaN agrees with nothing") {
  const auto judge = [](float given) {
    output_check checks({{{0, 1}, 1, 0, {1, 1}, {given, 1}}}, width, 1e-3);
    const std::vector<route_hop> route{{2, {0, 1}}};
    checks.routed(route);
    checks.sent(1);
    const std::vector<float> honest{1, 1};
    CHECK(checks.answered(1, honest));
    return std::holds_alternative<output_check::done>(checks.next());
  };
  CHECK(judge(1.0005f));
  CHECK_FALSE(judge(1.01f));
  CHECK_FALSE(judge(std::numeric_limits<float>::quiet_NaN()));
}
