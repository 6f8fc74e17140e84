// A peer's contribution to a round, and the residual that it keeps. No gradient that the reducers
// took is lost or counted twice, whatever the weights.
#include "actors/training/contribution.hpp"
#include "actors/training/low_rank_workload.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

using namespace shoal;
using namespace shoal::actors;

namespace {

constexpr std::size_t rows = 12, columns = 20, more = 5, size = rows * columns + more;

/// Steps with a learning rate of 1, and counts them in the optimizer's state.
class plain_work final : public workload {
public:
  std::uint64_t value_count() const override { return size; }
  std::vector<kernels::tensor_slot> layout() const override {
    return {{"matrix", 0, {rows, columns}}, {"vector", rows * columns, {more}}};
  }
  std::uint64_t sample_bytes() const override { return 1; }
  model_state initial() const override {
    model_state out;
    out.parameters = payload{std::vector<float>(size)};
    out.optimizer = payload{std::vector<float>{0}};
    return out;
  }
  double accumulate(const model_state&, std::span<const std::byte>, std::uint64_t,
                    std::span<double>) const override {
    return 0;
  }
  model_state step(const model_state& at, const payload& gradient) const override {
    auto out = at;
    std::vector<float> parameters(at.parameters.floats().begin(), at.parameters.floats().end());
    for (std::size_t i = 0; i < size; ++i) parameters[i] -= gradient.floats()[i];
    out.parameters = payload{std::move(parameters)};
    out.optimizer = payload{std::vector<float>{at.optimizer.floats()[0] + 1}};
    ++out.step;
    return out;
  }
};

std::vector<double> gradient_sum(rng& random, std::uint64_t samples) {
  std::vector<double> out(size);
  for (auto& x : out) x = static_cast<double>(samples) * random.normal();
  return out;
}

averaging_codecs top_k(double fraction) {
  return {{std::make_shared<const kernels::vector_codec>(
               kernels::codec::top_k, std::span<const std::uint64_t>{}, fraction),
           nullptr},
          {}};
}

/// One round as a group would run it, without a network. `taken(member)` returns the value ranges
/// of the last round's means that include the member's contribution.
struct group {
  std::shared_ptr<const workload> work;
  averaging_codecs codecs;
  std::vector<contribution> members;

  group(std::size_t count, std::shared_ptr<const workload> of, averaging_codecs with)
      : work(std::move(of)), codecs(std::move(with)) {
    for (std::size_t i = 0; i < count; ++i) members.emplace_back(work, codecs);
  }

  static payload mean_of(const std::vector<payload>& given,
                         const std::vector<std::uint64_t>& weights,
                         const std::vector<std::uint64_t>& until) {
    std::vector<float> out(given[0].size() / 4);
    for (std::size_t j = 0; j < out.size(); ++j) {
      double sum = 0, total = 0;
      for (std::size_t m = 0; m < given.size(); ++m)
        if (j < until[m])
          sum += static_cast<double>(weights[m]) * given[m].floats()[j],
              total += static_cast<double>(weights[m]);
      out[j] = total > 0 ? static_cast<float>(sum / total) : 0;
    }
    return payload{std::move(out)};
  }

  /// Each member's values of the last round are taken up to `until`.
  payload round(const model_state& at, const std::vector<std::vector<double>>& sums,
                const std::vector<std::uint64_t>& weights, std::vector<std::uint64_t> until = {}) {
    std::vector<round_request> requests(members.size());
    std::vector<payload> given;
    for (std::size_t m = 0; m < members.size(); ++m) {
      members[m].begin(at, sums[m], weights[m], requests[m]);
      auto values = requests[m].values;
      // One chunk only.
      if (const auto& codec = requests[m].codecs.contributions) {
        std::vector<float> left(values.size() / 4);
        REQUIRE(codec->decode(0, *codec->encode(0, values.floats()), left).ok());
        values = payload{std::move(left)};
      }
      given.push_back(values);
    }
    const bool two = work->low_rank() != nullptr;
    const std::vector<std::uint64_t> all(members.size(), given[0].size() / 4);
    if (until.empty())
      until.assign(members.size(), two ? work->low_rank()->second_round() : all[0]);
    auto mean = mean_of(given, weights, two ? all : until);
    auto values = mean;
    if (two) {
      for (std::size_t m = 0; m < members.size(); ++m) given[m] = requests[m].second.values(mean);
      const auto second = mean_of(given, weights, until);
      std::vector<float> both(mean.floats().begin(), mean.floats().end());
      both.insert(both.end(), second.floats().begin(), second.floats().end());
      values = payload{std::move(both)};
    }
    for (std::size_t m = 0; m < members.size(); ++m) {
      round_result result;
      result.outcome = outcome::ok;
      result.member = static_cast<std::uint32_t>(m);
      result.given = given[m];
      result.values = values;
      const auto end = given[m].size() / 4;
      if (until[m] > 0)
        result.parts.push_back({0, until[m], {static_cast<std::uint32_t>(m)}, weights[m]});
      if (until[m] < end) result.parts.push_back({until[m], end, {}, 0});
      members[m].averaged(result);
    }
    return values;
  }
};

std::shared_ptr<const low_rank_workload> low_rank(std::size_t rank, double saving) {
  auto inner = std::make_shared<const plain_work>();
  auto how = kernels::power_sgd::make(inner->layout(), size,
                                      {.rank = rank, .least_saving = saving, .seed = 4});
  REQUIRE(how.ok());
  return std::make_shared<const low_rank_workload>(inner, std::move(*how));
}

/// The change that a step subtracts from the parameters.
std::vector<float> update_of(const workload& work, const model_state& at, const payload& values) {
  const auto after = work.step(at, values);
  std::vector<float> out(size);
  for (std::size_t i = 0; i < size; ++i)
    out[i] = at.parameters.floats()[i] - after.parameters.floats()[i];
  return out;
}

} // namespace

TEST_CASE("contribution: without codec and PowerSGD it is the mean gradient, and so it is with "
          "top_k of all values") {
  rng random = stream(1, "contribution");
  auto work = std::make_shared<const plain_work>();
  const auto at = work->initial();
  group plain(1, work, {}), all(1, work, top_k(1));
  for (std::uint64_t samples : {3, 8, 1}) {
    const auto sum = gradient_sum(random, samples);
    const auto expected = mean_gradient(sum, samples);
    CHECK(std::ranges::equal(plain.round(at, {sum}, {samples}).bytes(), expected.bytes()));
    // This holds if only a part was taken, too: lost values are not kept.
    CHECK(std::ranges::equal(all.round(at, {sum}, {samples}, {100}).bytes().first(400),
                             expected.bytes().first(400)));
    CHECK(std::ranges::all_of(all.members[0].residual(), [](float x) { return x == 0; }));
  }
  CHECK(plain.members[0].residual().empty());
}

TEST_CASE("contribution: each sample's gradient counts once, now or later, however many samples "
          "its peer has then") {
  rng random = stream(2, "contribution");
  struct method {
    std::shared_ptr<const workload> work;
    averaging_codecs codecs;
  };
  for (const auto& [work, codecs] :
       {method{std::make_shared<const plain_work>(), top_k(0.1)}, {low_rank(2, 0.1), {}}}) {
    group swarm(3, work, codecs);
    auto at = work->initial();
    std::vector<double> computed(size), applied(size);
    for (int t = 0; t < 40; ++t) {
      std::vector<std::uint64_t> weights;
      std::vector<std::vector<double>> sums;
      double total = 0;
      for (int m = 0; m < 3; ++m) {
        const auto samples =
            m == t % 4 ? 0 : 1 + random.below(30); // sometimes a member has no samples
        weights.push_back(samples);
        sums.push_back(gradient_sum(random, samples));
        for (std::size_t i = 0; i < size; ++i) computed[i] += sums.back()[i];
        total += static_cast<double>(samples);
      }
      const auto values = swarm.round(at, sums, weights);
      const auto update = update_of(*work, at, values);
      for (std::size_t i = 0; i < size; ++i) applied[i] += total * update[i];
      auto next = work->step(at, values);
      next.parameters = at.parameters; // keeps updates exact
      at = next;
    }
    double left_over = 0, wrong = 0;
    for (std::size_t i = 0; i < size; ++i) {
      double left = 0;
      for (const auto& member : swarm.members) left += member.residual()[i];
      left_over = std::max(left_over, std::fabs(left));
      wrong = std::max(wrong, std::fabs(computed[i] - applied[i] - left));
    }
    CHECK(left_over > 10);
    CHECK(wrong < 0.02);
  }
}

TEST_CASE("contribution: values that were not taken stay in the residual, and a failed round "
          "changes nothing") {
  rng random = stream(3, "contribution");
  auto work = std::make_shared<const plain_work>();
  const auto at = work->initial();
  group swarm(2, work, top_k(0.1));
  swarm.round(at, {gradient_sum(random, 4), gradient_sum(random, 4)}, {4, 4});
  const std::vector<float> before(swarm.members[1].residual().begin(),
                                  swarm.members[1].residual().end());
  const auto again = gradient_sum(random, 6);
  round_request failed, retried;
  swarm.members[1].begin(at, again, 6, failed);
  swarm.members[1].begin(at, again, 6, retried);
  CHECK(std::ranges::equal(failed.values.bytes(), retried.values.bytes()));
  CHECK(std::ranges::equal(swarm.members[1].residual(), before));
  swarm.round(at, {gradient_sum(random, 4), again}, {4, 6}, {size, 50});
  const auto after = swarm.members[1].residual();
  CHECK_FALSE(std::equal(after.begin(), after.begin() + 50, before.begin()));
  CHECK(std::equal(after.begin() + 50, after.end(), before.begin() + 50));
  // Without samples the contribution is zero, and the residual stays.
  const std::vector<float> kept(after.begin(), after.end());
  swarm.round(at, {gradient_sum(random, 4), {}}, {4, 0});
  CHECK(std::ranges::equal(swarm.members[1].residual(), kept));
  swarm.members[1].forget();
  CHECK(swarm.members[1].residual().empty());
}

TEST_CASE("contribution: PowerSGD of full rank gives the uncompressed update up to rounding, and Q "
          "is in the state") {
  rng random = stream(4, "contribution");
  const auto work = low_rank(rows, -1);
  auto plain = std::make_shared<const plain_work>();
  group swarm(3, work, {});
  auto at = work->initial();
  CHECK(at.optimizer.size() == 4 + 4 * work->low_rank()->state_size());
  for (int t = 0; t < 5; ++t) {
    const auto sum = gradient_sum(random, 7);
    const auto values = swarm.round(at, {sum, sum, sum}, {7, 7, 7});
    const auto update = update_of(*work, at, values);
    const auto expected = update_of(*plain, at, mean_gradient(sum, 7));
    for (std::size_t i = 0; i < size; ++i)
      REQUIRE(update[i] == doctest::Approx(expected[i]).epsilon(1e-4).scale(0.05));
    // A member that joins has Q from the downloaded state, and projects like the others.
    at = work->step(at, values);
    contribution joiner(work, {});
    round_request theirs, ours;
    const auto next = gradient_sum(random, 2);
    joiner.begin(at, next, 2, theirs);
    contribution(work, {}).begin(at, next, 2, ours);
    CHECK(std::ranges::equal(theirs.values.bytes(), ours.values.bytes()));
  }
  CHECK(at.step == 5);
  CHECK(optimizer_without_q(*work->low_rank(), at).floats()[0] == 5);
  CHECK(q_of(*work->low_rank(), at).size() == work->low_rank()->state_size());
}

TEST_CASE("contribution: PowerSGD does not hide values that are not finite") {
  const auto work = low_rank(2, 0.1);
  const auto at = work->initial();
  contribution one(work, {});
  std::vector<double> sum(size, 1.0);
  // This value is not compressed, so round 1 does not see it.
  sum[size - 1] = std::nan("");
  round_request request;
  one.begin(at, sum, 4, request);
  CHECK(request.must_be_finite);
  CHECK(std::isnan(request.values.floats()[0]));
  // Means that another peer sends as a step are checked, too.
  for (const std::size_t where : {std::size_t{0}, std::size_t{work->low_rank()->first_round()}}) {
    std::vector<float> means(work->step_values(), 1);
    means[where] = std::nanf("");
    CHECK(std::isnan(work->step(at, payload{std::move(means)}).parameters.floats()[0]));
  }
}
