#include "kernels/base/rng.hpp"
#include "kernels/compress/power_sgd.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

using namespace shoal;
using namespace shoal::kernels;

namespace {

using vector = std::vector<float>;

vector normal(rng& random, std::size_t n, double scale = 1) {
  vector out(n);
  for (float& value : out) value = static_cast<float>(scale * random.normal());
  return out;
}

double norm(std::span<const float> x) {
  double out = 0;
  for (const double value : x) out += value * value;
  return std::sqrt(out);
}

/// One member's side of steps that all succeed.
class member {
public:
  explicit member(const power_sgd& how)
      : how_(how), residual_(how.size()), state_(how.first_state()) {}
  std::size_t first_round() const { return how_.first_round(); }
  std::size_t second_round() const { return how_.second_round(); }
  const vector& residual() const { return residual_; }
  const vector& state() const { return state_; }
  void take_state(const vector& other) { state_ = other; }
  void restart() { *this = member(how_); }

  result<void> begin(const vector& gradient, vector& p) {
    given_ = gradient;
    for (std::size_t i = 0; i < given_.size(); ++i) given_[i] += residual_[i];
    return how_.project(given_, state_, p);
  }
  result<void> middle(const vector& mean_p, vector& q) {
    p_ = mean_p;
    if (auto fine = how_.orthogonalise(p_); !fine) return fine;
    if (auto fine = how_.second(given_, p_, q); !fine) return fine;
    own_q_ = q;
    return {};
  }
  result<void> finish(const vector& mean_q, vector& out) {
    if (auto fine = how_.approximate(p_, mean_q, out); !fine) return fine;
    how_.keep(given_, p_, own_q_, std::vector<power_sgd::stretch>{{0, mean_q.size()}}, 1,
              residual_);
    how_.next_state(mean_q, state_);
    return {};
  }

private:
  power_sgd how_;
  vector residual_, state_, given_, p_, own_q_;
};

power_sgd shape(const std::vector<tensor_slot>& layout, const power_sgd_options& options) {
  auto out = power_sgd::make(layout, layout.back().offset + layout.back().size(), options);
  REQUIRE_MESSAGE(out.ok(), (out.ok() ? "" : out.error()));
  return std::move(*out);
}

member made(const std::vector<tensor_slot>& layout, const power_sgd_options& options) {
  return member(shape(layout, options));
}

/// One step of a group. Returns the result that all members take for the mean of their gradients.
vector step(std::vector<member>& members, const std::vector<vector>& gradients) {
  vector p(members[0].first_round()), mean_p(p.size()), q(members[0].second_round()),
      mean_q(q.size()), out(gradients[0].size());
  const auto n = static_cast<float>(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    REQUIRE(members[i].begin(gradients[i], p).ok());
    for (std::size_t k = 0; k < p.size(); ++k) mean_p[k] += p[k] / n;
  }
  for (auto& one : members) {
    REQUIRE(one.middle(mean_p, q).ok());
    for (std::size_t k = 0; k < q.size(); ++k) mean_q[k] += q[k] / n;
  }
  for (auto& one : members) REQUIRE(one.finish(mean_q, out).ok());
  return out;
}

const std::vector<tensor_slot> layout{{"embedding", 0, {40, 30}},
                                      {"norm", 1200, {30}},
                                      {"convolution", 1230, {20, 5, 6}},
                                      {"small", 1830, {2, 3}}};
constexpr std::size_t size = 1836;

} // namespace

TEST_CASE("power_sgd: products are those of the reference, to rounding") {
  rng random = stream(51, "power_sgd");
  for (const auto& [a, b, c] :
       {std::array<std::size_t, 3>{1, 1, 1}, {7, 5, 3}, {64, 100, 4}, {3, 1001, 2}}) {
    const auto x = normal(random, a * b), y = normal(random, b * c), z = normal(random, a * c);
    vector fast(a * c), slow(a * c), fast_t(b * c), slow_t(b * c);
    multiply(x, y, fast, a, b, c);
    multiply_reference(x, y, slow, a, b, c);
    multiply_transposed(x, z, fast_t, a, b, c);
    multiply_transposed_reference(x, z, slow_t, a, b, c);
    for (std::size_t i = 0; i < fast.size(); ++i)
      REQUIRE(fast[i] == doctest::Approx(slow[i]).epsilon(1e-6));
    CHECK(fast_t == slow_t);
  }
}

TEST_CASE("power_sgd: columns become orthonormal, and 0 where they depend on earlier ones") {
  rng random = stream(52, "power_sgd");
  for (const double scale : {1.0, 1e-38, 1e37}) {
    auto x = normal(random, 50 * 4, scale);
    for (std::size_t i = 0; i < 50; ++i) x[i * 4 + 2] = 2 * x[i * 4]; // depends on the first
    orthogonalise_columns(x, 50, 4);
    for (std::size_t a = 0; a < 4; ++a)
      for (std::size_t b = 0; b <= a; ++b) {
        double dot = 0;
        for (std::size_t i = 0; i < 50; ++i) dot += double{x[i * 4 + a]} * double{x[i * 4 + b]};
        CHECK(dot == doctest::Approx(a == b && a != 2 ? 1 : 0).epsilon(1e-6));
      }
  }
  vector zeros(12);
  orthogonalise_columns(zeros, 4, 3);
  CHECK(zeros == vector(12));
}

TEST_CASE("power_sgd: matrices that gain are compressed, and the rest travels exactly") {
  std::vector<member> one{made(layout, {.rank = 2})};
  CHECK(one[0].first_round() == 2 * (40 + 20));
  CHECK(one[0].second_round() == 2 * (30 + 30) + 30 + 6);
  rng random = stream(53, "power_sgd");
  const auto gradient = normal(random, size);
  const auto out = step(one, {gradient});
  for (std::size_t i = 1200; i < 1230; ++i) CHECK(out[i] == gradient[i]);
  for (std::size_t i = 1830; i < size; ++i) CHECK(out[i] == gradient[i]);
  // With a smaller saving the rank may be higher. Beyond that the matrices travel uncompressed.
  CHECK(made(layout, {.rank = 8, .least_saving = 0.5}).first_round() == 8 * 40);
  CHECK(made(layout, {.rank = 20, .least_saving = 0.5}).first_round() == 0);
}

TEST_CASE("power_sgd: gradients of the rank are averaged exactly, of a higher rank better with "
          "every step") {
  rng random = stream(54, "power_sgd");
  std::vector<member> members(4, made({{"matrix", 0, {60, 50}}}, {.rank = 3}));
  const auto left = normal(random, 60 * 3), right = normal(random, 3 * 50);
  vector low(60 * 50);
  multiply(left, right, low, 60, 3, 50);
  const auto out = step(members, std::vector<vector>(4, low));
  for (std::size_t i = 0; i < low.size(); ++i)
    REQUIRE(out[i] == doctest::Approx(low[i]).epsilon(1e-4));

  // The same gradient comes again and again. The mean of the results converges to it, because
  // nothing is lost.
  std::vector<member> group;
  for (int i = 0; i < 3; ++i) group.push_back(made(layout, {.rank = 1, .least_saving = 0.1}));
  std::vector<vector> gradients;
  vector mean(size);
  for (int i = 0; i < 3; ++i) {
    gradients.push_back(normal(random, size));
    for (std::size_t k = 0; k < size; ++k) mean[k] += gradients.back()[k] / 3;
  }
  std::vector<double> sum(size);
  double first = 0, last = 0;
  for (int t = 1; t <= 200; ++t) {
    const auto result = step(group, gradients);
    vector off(size);
    for (std::size_t k = 0; k < size; ++k)
      off[k] = static_cast<float>((sum[k] += result[k]) / t - mean[k]);
    if (t == 1) first = norm(off);
    last = norm(off);
  }
  CHECK(last < 0.25 * first);
}

TEST_CASE("power_sgd: the results and the residual add up to the gradients") {
  rng random = stream(55, "power_sgd");
  std::vector<member> group;
  for (int i = 0; i < 3; ++i) group.push_back(made(layout, {.rank = 2, .seed = 9}));
  std::vector<double> given(size), came(size);
  for (int t = 0; t < 50; ++t) {
    std::vector<vector> gradients;
    for (int i = 0; i < 3; ++i) {
      gradients.push_back(normal(random, size));
      for (std::size_t k = 0; k < size; ++k) given[k] += gradients.back()[k] / 3.0;
    }
    const auto out = step(group, gradients);
    for (std::size_t k = 0; k < size; ++k) came[k] += out[k];
    for (const auto& one : group) REQUIRE(one.state() == group[0].state());
  }
  double largest = 0;
  for (std::size_t k = 0; k < size; ++k) {
    double left = 0;
    for (const auto& one : group) left += one.residual()[k] / 3.0;
    largest = std::max(largest, std::fabs(came[k] + left - given[k]));
  }
  CHECK(largest < 1e-3);
}

TEST_CASE("power_sgd: zeros, denormals and one huge value pass; a value that is not finite changes "
          "nothing") {
  std::vector<member> one{made(layout, {.rank = 2})};
  CHECK(step(one, {vector(size)}) == vector(size));
  rng random = stream(56, "power_sgd");
  const auto gradient = normal(random, size);
  CHECK(norm(step(one, {gradient})) > 0); // zeros before it left no dead direction
  step(one, {vector(size, std::numeric_limits<float>::denorm_min())});
  vector huge(size);
  huge[77] = 1e30F;
  one[0].restart();
  CHECK(step(one, {huge})[77] == doctest::Approx(1e30F).epsilon(1e-5));

  const vector residual = one[0].residual(), state = one[0].state();
  vector p(one[0].first_round()), q(one[0].second_round()), out(size);
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t where : {0, 1210}) {
      auto wrong = gradient;
      wrong[where] = bad;
      CHECK_FALSE(one[0].begin(wrong, p).ok());
    }
    REQUIRE(one[0].begin(gradient, p).ok());
    auto wrong_p = p;
    wrong_p[5] = bad;
    CHECK_FALSE(one[0].middle(wrong_p, q).ok());
    REQUIRE(one[0].middle(p, q).ok());
    auto wrong_q = q;
    wrong_q[5] = bad;
    CHECK_FALSE(one[0].finish(wrong_q, out).ok());
  }
  CHECK_FALSE(one[0]
                  .begin(vector(size, std::numeric_limits<float>::max()), p)
                  .ok()); // the sums are infinite
  CHECK(one[0].residual() == residual);
  CHECK(one[0].state() == state);
}

TEST_CASE("power_sgd: a joiner that takes over the state goes on as the others do, and a failed "
          "round begins again") {
  rng random = stream(57, "power_sgd");
  std::vector<member> group(2, made(layout, {.rank = 2, .seed = 1}));
  step(group, {normal(random, size), normal(random, size)});
  auto joiner = made(layout, {.rank = 2, .seed = 2});
  joiner.take_state(group[0].state());
  group.push_back(joiner);
  const std::vector<vector> gradients{normal(random, size), normal(random, size),
                                      normal(random, size)};
  auto again = group;
  vector p(group[0].first_round());
  for (std::size_t i = 0; i < 3; ++i)
    REQUIRE(again[i].begin(normal(random, size), p).ok()); // a round that failed
  CHECK(step(again, gradients) == step(group, gradients));
}

TEST_CASE("power_sgd: at the full rank nothing is lost except by rounding") {
  rng random = stream(58, "power_sgd");
  std::vector<member> group(
      3, made({{"matrix", 0, {12, 30}}, {"norm", 360, {5}}}, {.rank = 12, .least_saving = -1}));
  CHECK(group[0].first_round() == 12 * 12);
  for (int t = 0; t < 3; ++t) {
    const auto gradient = normal(random, 365);
    const auto out = step(group, std::vector<vector>(3, gradient));
    for (std::size_t i = 0; i < 365; ++i)
      REQUIRE(out[i] == doctest::Approx(gradient[i]).epsilon(1e-4).scale(0.1));
    for (std::size_t i = 0; i < 365; ++i) REQUIRE(std::fabs(group[0].residual()[i]) < 1e-5);
  }
}

TEST_CASE("power_sgd: values of a member's Q that were not taken leave their columns of the "
          "residual unchanged") {
  rng random = stream(59, "power_sgd");
  const std::size_t rows = 9, columns = 20, rank = 2;
  const auto how = shape({{"matrix", 0, {rows, columns}}, {"norm", rows * columns, {3}}},
                         {.rank = rank, .least_saving = 0.1});
  const auto m = normal(random, how.size());
  vector p(how.first_round()), q(how.second_round());
  REQUIRE(how.project(m, how.first_state(), p).ok());
  REQUIRE(how.orthogonalise(p).ok());
  REQUIRE(how.second(m, p, q).ok());
  const auto before = normal(random, how.size());
  auto all = before, some = before;
  how.keep(m, p, q, std::vector<power_sgd::stretch>{{0, q.size()}}, 4, all);
  // Columns 0 to 4, half of the 5th, and from the second value of the 10th on.
  how.keep(m, p, q, std::vector<power_sgd::stretch>{{0, 11}, {21, q.size()}}, 4, some);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      const auto where = i * columns + j;
      CHECK(some[where] == (j < 5 || j > 10 ? all : before)[where]);
      double sent = 0;
      for (std::size_t k = 0; k < rank; ++k)
        sent += double{p[i * rank + k]} * double{q[j * rank + k]};
      CHECK(all[where] == doctest::Approx(4 * (m[where] - sent)));
    }
}

TEST_CASE("power_sgd: impossible options are refused") {
  const auto error = [](const std::vector<tensor_slot>& of, std::size_t n,
                        const power_sgd_options& options) {
    const auto out = power_sgd::make(of, n, options);
    return out.ok() ? std::string() : out.error();
  };
  CHECK(error(layout, size, {.rank = 0}) == "PowerSGD: the rank has to be at least 1");
  CHECK(error(layout, size, {.rank = 31}) ==
        "PowerSGD: rank 31 is above the 30 rows or columns of embedding, the largest matrix");
  CHECK(error({{"norm", 0, {30}}}, 30, {}) == "PowerSGD: there is no matrix to compress");
  CHECK(error(layout, size, {.least_saving = 1}) ==
        "PowerSGD: the saving has to be at least -1 and below 1");
  CHECK(error(layout, size + 1, {}) == "PowerSGD: the layout covers 1836 of 1837 values");
  CHECK(error(layout, 1000, {}).find("embedding does not lie") != std::string::npos);
}
