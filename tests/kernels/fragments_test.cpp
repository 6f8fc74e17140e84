// kernels/fragments: patterns by hand and as partitions, schedules against a plain scan of the
// header's conditions, gather, scatter and blend.
#include "kernels/fragments.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

namespace {

/// The header's conditions, for one fragment after the other.
fragment_actions actions_reference(const fragment_schedule& s, std::int64_t t) {
  fragment_actions out;
  for (std::int64_t p = 0; p < s.fragments; ++p) {
    auto sent = static_cast<std::int64_t>(
        std::floor(static_cast<double>((p + 1) * s.period) / static_cast<double>(s.fragments)));
    if (s.align == fragment_align::applying) sent -= s.delay;
    for (; sent <= t; sent += s.period) {
      if (sent == t) out.send = static_cast<std::size_t>(p);
      if (sent + s.delay == t) out.apply = static_cast<std::size_t>(p);
    }
  }
  return out;
}

/// Five blocks of 3, 2 + 4, 1 + 5, 6 and 2 elements.
std::vector<tensor_slot> small_layout() {
  return {{"embedding", 0, {3}},   {"layer0.norm", 3, {2}}, {"layer0.up", 5, {2, 2}},
          {"layer1.norm", 9, {1}}, {"layer1.up", 10, {5}},  {"layer10.up", 15, {6}},
          {"final_norm", 21, {2}}};
}

} // namespace

TEST_CASE("fragments take whole layers, in turn or one after the other") {
  const auto layout = small_layout();
  const auto strided = make_fragments(layout, 2, fragment_pattern::strided).value();
  CHECK(strided == std::vector<fragment>{{{0, 3}, {9, 15}, {21, 23}}, {{3, 9}, {15, 21}}});
  const auto sequential = make_fragments(layout, 2, fragment_pattern::sequential).value();
  CHECK(sequential == std::vector<fragment>{{{0, 9}}, {{9, 23}}});
  for (const auto pattern : {fragment_pattern::strided, fragment_pattern::sequential}) {
    const auto whole = make_fragments(layout, 1, pattern).value();
    CHECK(whole == std::vector<fragment>{{{0, 23}}});
  }
  CHECK(make_fragments(10, 3).value() == std::vector<fragment>{{{0, 4}}, {{4, 7}}, {{7, 10}}});
}

TEST_CASE("a transformer's fragments hold each element once, each pattern in its own order") {
  const auto layout = layout_of({.layers = 6, .heads = 2, .dim = 8, .context = 4});
  for (std::size_t count = 1; count <= 8; ++count)
    for (const auto pattern : {fragment_pattern::strided, fragment_pattern::sequential}) {
      const auto fragments = make_fragments(layout, count, pattern).value();
      REQUIRE(fragments.size() == count);
      std::vector<int> seen(layout.back().offset + layout.back().size());
      for (const auto& part : fragments) {
        CHECK(size_of(part) > 0);
        for (const auto& range : part)
          for (auto i = range.begin; i < range.end; ++i) ++seen[i];
        if (pattern == fragment_pattern::sequential) CHECK(part.size() == 1);
      }
      CHECK(seen == std::vector<int>(seen.size(), 1));
    }
}

TEST_CASE("impossible fragments are refused") {
  const auto layout = small_layout();
  CHECK(make_fragments(layout, 5, fragment_pattern::strided).ok());
  CHECK(make_fragments(layout, 6, fragment_pattern::strided).error() ==
        "fragments: 6 of 5 layers and single tensors; there must be from 1 to 5");
  CHECK_FALSE(make_fragments(layout, 0, fragment_pattern::sequential).ok());
  CHECK_FALSE(make_fragments(3, 4).ok());
  CHECK_FALSE(make_fragments(3, 0).ok());
}

TEST_CASE("gather and scatter are inverse and leave the other elements alone") {
  const fragment part{{1, 3}, {5, 6}};
  std::vector<float> vector(7);
  std::iota(vector.begin(), vector.end(), 0.0F);
  std::vector<float> out(size_of(part));
  gather(part, vector, out);
  CHECK(out == std::vector<float>{1, 2, 5});
  for (auto& x : out) x *= 10;
  scatter(part, out, vector);
  CHECK(vector == std::vector<float>{0, 10, 20, 3, 4, 50, 6});
}

TEST_CASE("blending keeps the share alpha, and is exact at both ends") {
  const std::vector<float> outer{1, -2, 0.1F};
  const auto blended = [&](double alpha, std::vector<float> local) {
    blend(alpha, outer, local);
    return local;
  };
  const std::vector<float> local{3, 4, 0.3F};
  CHECK(blended(0, local) == outer);
  CHECK(blended(1, local) == local);
  CHECK(blended(0.5, local) == std::vector<float>{2, 1, 0.2F});
  CHECK(blended(0.25, local)[1] == doctest::Approx(-0.5));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(blended(0, {nan, nan, nan}) == outer);
}

TEST_CASE("a schedule's steps are those of a plain scan") {
  for (const auto align : {fragment_align::sending, fragment_align::applying})
    for (std::int64_t period = 1; period <= 12; ++period)
      for (std::int64_t fragments = 1; fragments <= period; ++fragments)
        for (std::int64_t delay = 0; delay < period; ++delay) {
          const fragment_schedule s{period, fragments, delay, 0, align};
          if (!validate(s)) continue;
          CAPTURE(period);
          CAPTURE(fragments);
          CAPTURE(delay);
          for (std::int64_t t = 1; t <= 3 * period; ++t)
            REQUIRE(actions_after(s, t) == actions_reference(s, t));
          for (std::int64_t p = 0; p < fragments; ++p) {
            REQUIRE(first_sent_after(s, p) >= 1);
            REQUIRE(first_sent_after(s, p) <= period);
            REQUIRE(actions_after(s, first_sent_after(s, p)).send == static_cast<std::size_t>(p));
          }
        }
}

TEST_CASE("in each period every fragment is sent once, and applied tau steps later") {
  const fragment_schedule s{.period = 100, .fragments = 7, .delay = 33, .alpha = 0.5};
  std::vector<std::int64_t> sent(7, -1);
  std::multiset<std::size_t> applied;
  for (std::int64_t t = 1; t <= 1000; ++t) {
    const auto actions = actions_after(s, t);
    if (actions.apply) {
      CHECK(t - sent[*actions.apply] == 33);
      applied.insert(*actions.apply);
    }
    if (actions.send) {
      if (sent[*actions.send] >= 0) CHECK(t - sent[*actions.send] == 100);
      sent[*actions.send] = t;
    }
  }
  // The last three fragments are sent so late in a period that the tenth one is still on its way.
  for (std::size_t p = 0; p < 7; ++p) CHECK(applied.count(p) == (p < 4 ? 10 : 9));
}

TEST_CASE("counted rounds go through the fragments in turn") {
  const fragment_schedule s{.period = 6, .fragments = 3};
  for (std::int64_t round = 0; round < 9; ++round)
    CHECK(fragment_of_round(s, round) == static_cast<std::size_t>(round % 3));
}

TEST_CASE("impossible schedules are refused") {
  CHECK(validate(fragment_schedule{}).ok());
  CHECK_FALSE(validate(fragment_schedule{.period = 0}).ok());
  CHECK_FALSE(validate(fragment_schedule{.period = 4, .fragments = 5}).ok());
  CHECK_FALSE(validate(fragment_schedule{.period = 4, .fragments = 0}).ok());
  CHECK_FALSE(validate(fragment_schedule{.period = 4, .delay = 4}).ok());
  CHECK_FALSE(validate(fragment_schedule{.period = 4, .delay = -1}).ok());
  CHECK_FALSE(validate(fragment_schedule{.alpha = 1.1}).ok());
  CHECK_FALSE(validate(fragment_schedule{.alpha = std::nan("")}).ok());
  const fragment_schedule two{.period = 6, .fragments = 2, .delay = 3};
  CHECK(validate(two).ok());
  auto one_at_a_time = two;
  one_at_a_time.align = fragment_align::applying;
  CHECK(validate(one_at_a_time).error() == "fragments: the delay must be from 0 to 2 local steps");
}
