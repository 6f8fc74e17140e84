// DiLoCo as a plain loop over kernels (optimizer, outer_optimizer, fragments) reproduces the
// parameter histories of torchft's regression test.
//
// Figures: pytorch/torchft (BSD 3-Clause), torchft/diloco_regression_test.py and
// test_fixtures/torchft.diloco_regression_test.DiLoCoMockedUpdateTest.*.json at commit
// 73dafea422116b2a713542719c8454efe5444c6c. There are two replicas of two layers of one weight,
// which is 1 at first. Each gradient is 2, the inner rate 1, and the outer rate 2 without momentum.
// A fragment is a layer and has a round each 6 local steps.
#include "kernels/fragments.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/outer_optimizer.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <doctest/doctest.h>

#include <array>
#include <span>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

namespace {

const std::vector<tensor_slot> layers{{"layer0.weight", 0, {1, 1}}, {"layer1.weight", 1, {1, 1}}};
constexpr optimizer_config inner{.kind = optimizer_kind::sgd, .learning_rate = 1};
constexpr outer_optimizer_config outer{.learning_rate = 2, .momentum = 0};

/// One value for each layer.
using history = std::array<std::vector<float>, 2>;

struct replica {
  std::vector<float> local{1, 1}, outer{1, 1}, state;
  std::int64_t steps = 0;
  std::vector<float> sent; // the pseudo-gradient on its way
  history locals;          // local parameters before each local step

  void note() {
    for (std::size_t i = 0; i < 2; ++i) locals[i].push_back(local[i]);
  }
  void local_step() {
    step(inner, ++steps, std::vector<float>{2, 2}, local, std::span<float>(state));
  }
};

/// The rounds of all replicas. The caller says which replicas take part.
class diloco {
public:
  explicit diloco(fragment_schedule schedule)
      : schedule_(schedule),
        fragments_(make_fragments(layers, 2, fragment_pattern::strided).value()) {
    REQUIRE(validate(schedule).ok());
  }

  /// Sends and applies the fragments that are due after local step `t`.
  void after(std::int64_t t, std::span<replica* const> members) {
    const auto actions = actions_after(schedule_, t);
    if (actions.send)
      for (auto* member : members) send(*member, fragments_[*actions.send]);
    if (actions.apply) apply(fragments_[*actions.apply], members);
  }

private:
  static std::vector<float> part(const fragment& which, const std::vector<float>& of) {
    std::vector<float> out(size_of(which));
    gather(which, of, out);
    return out;
  }

  static void send(replica& member, const fragment& which) {
    member.sent = part(which, member.local);
    pseudo_gradient(part(which, member.outer), member.sent, member.sent);
  }

  void apply(const fragment& which, std::span<replica* const> members) {
    std::vector<weighted_values> given;
    for (const auto* member : members) given.push_back({1, member->sent});
    std::vector<float> mean(size_of(which));
    REQUIRE(weighted_mean(given, mean) == given.size());
    ++rounds_;
    for (auto* member : members) {
      auto parameters = part(which, member->outer), local = part(which, member->local);
      outer_step(outer, rounds_, mean, parameters, {});
      blend(schedule_.alpha, parameters, local);
      scatter(which, parameters, member->outer);
      scatter(which, local, member->local);
    }
  }

  fragment_schedule schedule_;
  std::vector<fragment> fragments_;
  std::int64_t rounds_ = 0;
};

struct regression_case {
  std::int64_t delay;
  double alpha;
  history locals; // local parameters before local steps 1 to 16
  history outers; // outer parameters before local steps 1, 4, 7, 10 and 13
};

const std::vector<float> untouched{1,   -1,  -3,  -5,  -7,  -9,  -11, -13,
                                   -15, -17, -19, -21, -23, -25, -27, -29};

const std::vector<regression_case> cases{
    {0,
     0,
     {{{1, -1, -3, -11, -13, -15, -17, -19, -21, -35, -37, -39, -41, -43, -45, -59},
       {1, -1, -3, -5, -7, -9, -23, -25, -27, -29, -31, -33, -47, -49, -51, -53}}},
     {{{1, -11, -11, -35, -35}, {1, 1, -23, -23, -47}}}},
    {0,
     0.5,
     {{{1, -1, -3, -8, -10, -12, -14, -16, -18, -24.5F, -26.5F, -28.5F, -30.5F, -32.5F, -34.5F,
        -40.25F},
       {1, -1, -3, -5, -7, -9, -17, -19, -21, -23, -25, -27, -32, -34, -36, -38}}},
     {{{1, -11, -11, -29, -29}, {1, 1, -23, -23, -35}}}},
    {0, 1, {{untouched, untouched}}, {{{1, -11, -11, -23, -23}, {1, 1, -23, -23, -23}}}},
    {1,
     0,
     {{{1, -1, -3, -7, -9, -11, -13, -15, -17, -27, -29, -31, -33, -35, -37, -47},
       {1, -1, -3, -5, -7, -9, -19, -21, -23, -25, -27, -29, -39, -41, -43, -45}}},
     {{{1, -7, -7, -27, -27}, {1, 1, -19, -19, -39}}}},
    {1,
     0.5,
     {{{1, -1, -3, -6, -8, -10, -12, -14, -16, -21.5F, -23.5F, -25.5F, -27.5F, -29.5F, -31.5F,
        -35.75F},
       {1, -1, -3, -5, -7, -9, -15, -17, -19, -21, -23, -25, -29, -31, -33, -35}}},
     {{{1, -7, -7, -25, -25}, {1, 1, -19, -19, -31}}}},
    {1, 1, {{untouched, untouched}}, {{{1, -7, -7, -23, -23}, {1, 1, -19, -19, -23}}}},
};

fragment_schedule schedule_of(std::int64_t delay, double alpha) {
  return {.period = 6,
          .fragments = 2,
          .delay = delay,
          .alpha = alpha,
          .align = fragment_align::applying};
}

} // namespace

TEST_CASE("the kernels reproduce torchft's six histories of Streaming DiLoCo") {
  for (const auto& expected : cases) {
    CAPTURE(expected.delay);
    CAPTURE(expected.alpha);
    diloco method(schedule_of(expected.delay, expected.alpha));
    std::vector<replica> replicas(2);
    const std::vector<replica*> members{&replicas[0], &replicas[1]};
    history outers;
    for (std::int64_t t = 1;; ++t) {
      for (auto* member : members) member->note();
      if (t == 16) break;
      for (std::size_t i = 0; (t - 1) % 3 == 0 && i < 2; ++i)
        outers[i].push_back(replicas[0].outer[i]);
      for (auto* member : members) member->local_step();
      method.after(t, members);
    }
    for (const auto& one : replicas) CHECK(one.locals == expected.locals);
    CHECK(replicas[0].outer == replicas[1].outer);
    CHECK(outers == expected.outers);
  }
}

TEST_CASE("the kernels reproduce torchft's history of a replica that dies and comes back") {
  // The second replica dies after local step 6. A new one makes three local steps of its own. Then
  // it takes over everything from the first one, local parameters included. It takes part in the
  // round that is just due.
  const history survivor{{{1,   -1,  -3,  -11, -13, -15, -17, -19, -21, -35, -37,
                           -39, -41, -43, -45, -59, -61, -63, -65, -67, -69, -83},
                          {1,   -1,  -3,  -5,  -7,  -9,  -23, -25, -27, -29, -31,
                           -33, -47, -49, -51, -53, -55, -57, -71, -73, -75, -77}}};
  const history newcomer{
      {{1, -1, -3, -35, -37, -39, -41, -43, -45, -59, -61, -63, -65, -67, -69, -83},
       {1, -1, -3, -29, -31, -33, -47, -49, -51, -53, -55, -57, -71, -73, -75, -77}}};
  diloco method(schedule_of(0, 0));
  replica first, second;
  for (std::int64_t t = 1; t <= 21; ++t) {
    if (t == 7) second = replica{};
    for (auto* one : {&first, &second}) {
      one->note();
      one->local_step();
    }
    if (t == 9) {
      second.local = first.local;
      second.outer = first.outer;
    }
    if (t > 6 && t < 9) continue; // no round is due
    method.after(t, std::vector<replica*>{&first, &second});
  }
  first.note();
  second.note();
  CHECK(first.locals == survivor);
  CHECK(second.locals == newcomer);
  CHECK(first.outer == std::vector<float>{-83, -71});
  CHECK(second.outer == first.outer);
}
