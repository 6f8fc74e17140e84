#include "scenarios/chaos/inevitable.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <vector>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;

TEST_CASE("bisection finds the last moment with a way out, to the precision") {
  for (const duration last : {duration(0s), duration(1s), duration(1234567us), duration(59s)}) {
    std::vector<duration> asked;
    const auto found = find_inevitable(60s, 10ms, [&](duration at) -> std::optional<std::uint64_t> {
      asked.push_back(at);
      return at <= last ? std::optional<std::uint64_t>(asked.size()) : std::nullopt;
    });
    REQUIRE(found.last.has_value());
    CHECK(found.last->at <= last);
    CHECK(found.closed > last);
    CHECK(found.closed - found.last->at <= 10ms);
    CHECK(found.moments == asked.size());
    CHECK(asked.size() <= 15); // 1 + log2(60 s / 10 ms)
    CHECK(asked[found.last->seed - 1] == found.last->at);
  }
}

TEST_CASE("without a way out at time zero nothing else is tried") {
  const auto found = find_inevitable(60s, 10ms, [](duration at) -> std::optional<std::uint64_t> {
    CHECK(at == 0s);
    return std::nullopt;
  });
  CHECK(!found.last);
  CHECK(found.moments == 1);
}
