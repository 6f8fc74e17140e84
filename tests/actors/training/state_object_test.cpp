// A state with a method state, as a download. The other objects are in
// tests/actors/state_fetcher_test.cpp.
#include "actors/averaging/certificate.hpp"
#include "actors/training/state_object.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace shoal;
using namespace shoal::actors;

namespace {

model_state a_state(bool with_method) {
  model_state out;
  out.epoch = 3;
  out.id = {1, 2};
  out.parameters = payload{std::vector<float>{1, 2, 3}};
  out.optimizer = payload{std::vector<float>{9, 8}};
  if (with_method) out.method_state = payload{std::vector<float>{5, 6, 7}};
  return out;
}

model_state travelled(const model_state& state, std::uint64_t method_bytes) {
  const shared_object object(state, 8);
  state_download download(state.id, 12, 8, false, method_bytes);
  REQUIRE(download.sensible(object.offer(), 1000));
  download.begin(object.offer());
  while (const auto at = download.take())
    REQUIRE(download.add(*at, object.bytes(*at, download.size_at(*at))));
  REQUIRE(download.complete());
  return download.state();
}

bool same(const payload& a, const payload& b) {
  return a.size() == b.size() && std::ranges::equal(a.bytes(), b.bytes());
}

} // namespace

TEST_CASE("a method state follows the optimizer's in a download, and chunks across the seam are "
          "complete") {
  const auto before = a_state(true);
  CHECK(before.bytes() == 32);
  const auto after = travelled(before, 12);
  CHECK(same(after.parameters, before.parameters));
  CHECK(same(after.optimizer, before.optimizer));
  CHECK(same(after.method_state, before.method_state));
  CHECK(content_of(after) == content_of(before));
}

TEST_CASE("a peer whose method has a state downloads one from before the first round, without a "
          "method state") {
  const auto after = travelled(a_state(false), 12);
  CHECK(after.method_state.empty());
  CHECK(after.optimizer.size() == 8);
}

TEST_CASE(
    "an offer with a method state is refused if the method has none, or one of another size") {
  const auto offer = shared_object(a_state(true), 8).offer();
  CHECK_FALSE(state_download({1, 2}, 12, 8, false).sensible(offer, 1000));
  CHECK_FALSE(state_download({1, 2}, 12, 8, false, 16).sensible(offer, 1000));
}

TEST_CASE("a state without a method state is offered and named as if there were no such field") {
  const auto plain = a_state(false);
  CHECK(shared_object(plain, 8).offer().size == 20);
  CHECK(content_of(plain) != content_of(a_state(true)));
  auto size_only = a_state(true);
  size_only.parameters = payload::size_only(12);
  size_only.optimizer = payload::size_only(8);
  size_only.method_state = payload::size_only(12);
  CHECK(shared_object(size_only, 8).bytes(8, 24).size() == 24);
}

TEST_CASE(
    "a state whose bytes do not have the certified root is refused before a chunk is asked for") {
  model_state state;
  state.id = {1, 2};
  state.epoch = 3;
  state.parameters = payload{std::vector<float>{1, 2, 3, 4}};
  auto other = state;
  other.parameters = payload{std::vector<float>{1, 2, 3, 5}};
  const auto offer = shared_object(state, 8).offer(), false_offer = shared_object(other, 8).offer();
  state_download download(state.id, 16, 0, false);
  CHECK(download.sensible(false_offer, 1000));
  download.expect(state_download::version(offer));
  CHECK(download.sensible(offer, 1000));
  CHECK_FALSE(download.sensible(false_offer, 1000));
  auto later = offer;
  later.epoch += 1;
  CHECK_FALSE(download.sensible(later, 1000));
}

TEST_CASE("a state offer with more commits or parts than a peer keeps is refused") {
  model_state state;
  state.id = {1, 2};
  state.parameters = payload{std::vector<float>{1, 2}};
  const auto good = shared_object(state, 8).offer();
  const state_download download(state.id, 8, 0, false);
  REQUIRE(download.sensible(good, 1000));
  auto bad = good;
  bad.commits.resize(most_commits + 1);
  CHECK_FALSE(download.sensible(bad, 1000));
  bad = good;
  bad.parts.resize(most_step_parts + 1);
  CHECK_FALSE(download.sensible(bad, 1000));
}

TEST_CASE("a step's values, senders and samples have to be those of its certificate") {
  round_certificate certificate;
  certificate.roster.chunk_bytes = 8;
  for (std::uint64_t i = 0; i < 3; ++i) {
    member_info who;
    who.weight = 10 + i;
    certificate.roster.members.push_back(who);
  }
  taken_step good;
  good.samples = 100 + 33;
  good.gradient = payload{std::vector<float>{1, 2, 3, 4, 5, 6, 7}};
  // Member 1 has no part. The part of member 2 lost a sender half-way.
  good.parts = {{0, 0, 3, {0, 1, 2}}, {2, 3, 5, {0, 1, 2}}, {2, 5, 7, {0, 2}}};
  std::vector<part_outcome> parts;
  for (const auto& part : good.parts)
    parts.push_back({part.begin, part.end, part.senders, 0, part.part});
  certificate.version = version_of({0, 3, 3, 7}, 8, parts, good.gradient);
  REQUIRE(proves(certificate, good, 100));

  const auto refuses = [&](auto change) {
    auto bad = good;
    change(bad);
    return !proves(certificate, bad, 100);
  };
  CHECK(refuses([](auto& s) { s.gradient = payload{std::vector<float>{1, 2, 3, 4, 5, 6, 8}}; }));
  CHECK(refuses([](auto& s) { s.gradient = payload{std::vector<float>{1, 2, 3, 4, 5, 6}}; }));
  CHECK(refuses([](auto& s) { s.gradient = payload::size_only(28); }));
  CHECK(refuses([](auto& s) { s.gradient = {}; }));
  CHECK(refuses([](auto& s) { ++s.samples; }));
  CHECK(refuses([](auto& s) { s.parts[0].senders = {0, 1}; }));
  CHECK(refuses([](auto& s) { s.parts[0].senders = {0, 1, 9}; }));
  CHECK(refuses([](auto& s) { s.parts[0].part = 9; }));
  CHECK(refuses([](auto& s) { s.parts[0].end = 2; }));
  CHECK(refuses([](auto& s) { s.parts[0].begin = 1; }));
  CHECK(refuses([](auto& s) { s.parts[1].end = s.parts[2].begin = 4; }));
  CHECK(refuses([](auto& s) { s.parts.clear(); }));
  CHECK(refuses([](auto& s) { s.parts.pop_back(); }));
  CHECK(refuses([](auto& s) { std::swap(s.parts[0], s.parts[1]); }));
  CHECK(refuses([](auto& s) { s.parts.push_back({2, 7, 9, {0}}); }));
  CHECK_FALSE(proves(certificate, good, 101));
  auto other = certificate;
  ++other.version.low;
  CHECK_FALSE(proves(other, good, 100));
  other = certificate;
  other.roster.chunk_bytes = 0;
  CHECK_FALSE(proves(other, good, 100));
}
