#include "actors/dht/waiting_proofs.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using namespace shoal;
using namespace shoal::actors;

namespace {

proof verdict_about(std::uint64_t group) {
  verdict out;
  out.group = {group, group};
  return out;
}

} // namespace

TEST_CASE("one member's verdicts about unknown groups push nobody else's out") {
  waiting_proofs waiting;
  waiting.add(verdict_about(1), {1, 1});
  waiting.add(verdict_about(2), {2, 2});
  for (std::uint64_t group = 100; group < 300; ++group) waiting.add(verdict_about(group), {7, 7});
  CHECK(waiting.has(verdict_about(1)));
  CHECK(waiting.has(verdict_about(2)));
  CHECK(waiting.has(verdict_about(299)));
  CHECK(!waiting.has(verdict_about(100)));
  const auto all = waiting.take();
  CHECK(all.size() == waiting_proofs::most);
  CHECK(all.front().what == verdict_about(1));
  CHECK(waiting.take().empty());
}

TEST_CASE("members that send as many verdicts have as many places") {
  waiting_proofs waiting;
  for (std::uint64_t group = 0; group < 400; ++group)
    waiting.add(verdict_about(group), {group % 4, 0});
  std::uint64_t of_first = 0;
  for (const auto& each : waiting.take()) of_first += each.from == member_id{0, 0} ? 1 : 0;
  CHECK(of_first == waiting_proofs::most / 4);
}
