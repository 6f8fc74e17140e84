// A state with a method state, as a download. The other objects are in
// tests/actors/state_fetcher_test.cpp.
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
