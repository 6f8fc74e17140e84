// kernels/learn/mixture_network, feed_forward and image_ends, and kernels/expert_gate: gradients
// agree with differences, and a mixture of all experts is the dense one.
#include "kernels/amsgrad.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/dense.hpp"
#include "kernels/expert_gate.hpp"
#include "kernels/learn/feed_forward.hpp"
#include "kernels/learn/image_ends.hpp"
#include "kernels/learn/mixture_network.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

using namespace shoal;
using namespace shoal::learn;

namespace {

std::vector<float> normals(std::uint64_t seed, std::size_t n) {
  auto random = stream(seed, "mixture.test");
  std::vector<float> out(n);
  for (auto& v : out) v = static_cast<float>(random.normal());
  return out;
}

/// Compares a gradient with central differences of `loss` at `count` places.
void check_gradient(std::vector<float>& at, std::span<const float> gradient, std::size_t count,
                    const std::function<double()>& loss) {
  auto random = stream(9, "places");
  double worst = 0, size = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const auto i = random.below(at.size());
    const float before = at[i];
    constexpr float h = 4e-3F;
    at[i] = before + h;
    const double up = loss();
    at[i] = before - h;
    const double down = loss();
    at[i] = before;
    worst = std::max(worst, std::abs((up - down) / (2 * h) - gradient[i]));
    size = std::max(size, std::abs(static_cast<double>(gradient[i])));
  }
  CHECK(size > 1e-4);
  CHECK(worst < 0.02 * size + 2e-4);
}

double sum_of_products(std::span<const float> a, std::span<const float> b) {
  double out = 0;
  for (std::size_t i = 0; i < a.size(); ++i) out += static_cast<double>(a[i]) * b[i];
  return out;
}

/// A small network over images of 12 bytes, with experts of its own.
struct small_network {
  std::shared_ptr<const network_ends> ends =
      make_image_ends({.pixels = 12, .classes = 3, .width = 8});
  mixture_network net;
  std::shared_ptr<const expert_block> block = make_feed_forward(8);
  std::vector<float> parameters = net.initial_parameters(5);
  std::vector<std::vector<float>> experts, gradients; // by layer and expert
  std::vector<std::byte> samples;
  std::size_t count;

  explicit small_network(std::vector<std::uint32_t> grid, double balance = 0,
                         gate_kind gate = gate_kind::softmax)
      : net(ends, {.layers = 2, .grid = grid, .balance = balance, .gate = gate}) {
    count = 1;
    for (const auto side : grid) count *= side;
    for (std::size_t e = 0; e < 2 * count; ++e) experts.push_back(block->initial_parameters(e));
    auto random = stream(4, "samples");
    for (std::size_t n = 0; n < 5; ++n) {
      for (std::size_t i = 0; i < 12; ++i) samples.push_back(std::byte(random.below(256)));
      samples.push_back(std::byte(random.below(3)));
    }
  }

  kernels::expert_place place_of(std::size_t e) const {
    kernels::expert_place out(net.shape().grid.size());
    for (std::size_t d = out.size(); d-- > 0; e /= net.shape().grid[d])
      out[d] = static_cast<std::uint32_t>(e % net.shape().grid[d]);
    return out;
  }

  /// All experts of all rows; `fails` says which do not answer.
  void forward(mixture_pass& pass,
               const std::function<bool(std::size_t row, std::size_t expert)>& fails) const {
    for (std::size_t l = 0; l < 2; ++l) {
      std::vector<std::vector<expert_choice>> chosen(pass.rows());
      for (std::size_t n = 0; n < pass.rows(); ++n)
        for (std::size_t e = 0; e < count; ++e) {
          chosen[n].push_back({place_of(e)});
          if (!fails(n, e))
            chosen[n].back().output = block->forward(experts[l * count + e], pass.row(n)).value();
        }
      pass.advance(std::move(chosen));
    }
  }

  void backward(mixture_pass& pass) {
    gradients.assign(experts.size(), std::vector<float>(block->parameter_count()));
    pass.leave();
    while (!pass.is_over()) {
      const auto l = pass.layer();
      for (std::size_t n = 0; n < pass.rows(); ++n)
        for (std::size_t e = 0; e < count; ++e) {
          auto& one = pass.chosen()[n][e];
          if (one.output.empty()) continue;
          one.gradient = block
                             ->backward(experts[l * count + e], pass.row(n), pass.gradient_of(n, e),
                                        gradients[l * count + e])
                             .value();
        }
      pass.retreat();
    }
  }
};

} // namespace

TEST_CASE("experts: the gradients of a feed-forward expert agree with differences") {
  const auto block = make_feed_forward(6);
  auto parameters = block->initial_parameters(3);
  CHECK(block->parameter_count() == 24 * 36 + 25 * 6);
  auto x = normals(1, 18);
  const auto upstream = normals(2, 18);
  std::vector<float> gradient(parameters.size());
  const auto of_x = block->backward(parameters, x, upstream, gradient).value();
  const auto loss = [&] {
    return sum_of_products(block->forward(parameters, x).value(), upstream);
  };
  check_gradient(parameters, gradient, 200, loss);
  check_gradient(x, of_x, 18, loss);
  CHECK_FALSE(block->forward(parameters, std::span(x).first(7)).ok());
  CHECK_FALSE(block->forward(std::span(parameters).first(9), x).ok());
}

TEST_CASE("experts: the gate's keys are normalized over the experts for each input feature") {
  const kernels::expert_gate gate(2, {3});
  std::vector<float> parameters(gate.parameters());
  gate.initial(1, 0, parameters);
  const float keys[] = {3, 0, 4, 1, 2, 2};
  std::copy(std::begin(keys), std::end(keys), parameters.begin() + 4);
  // The norm of (1, -1) is (1, -1), to its epsilon. The features have key norms 5 and 3.
  const std::vector<float> x{1, -1};
  const auto scores = gate.scores(parameters, x);
  CHECK(scores[0] == doctest::Approx(3.0 / 5 - 1.0 / 3).epsilon(1e-4));
  CHECK(scores[1] == doctest::Approx(0.0 - 2.0 / 3).epsilon(1e-4));
  CHECK(scores[2] == doctest::Approx(4.0 / 5 - 2.0 / 3).epsilon(1e-4));
}

TEST_CASE("experts: the gate's gradients agree with differences") {
  const kernels::expert_gate gate(7, {4, 3});
  CHECK(gate.keys() == 7);
  std::vector<float> parameters(gate.parameters());
  gate.initial(2, 1, parameters);
  auto x = normals(3, 21);
  const auto upstream = normals(4, 21);
  std::vector<float> gradient(parameters.size()), of_x(x.size());
  gate.backward(parameters, x, upstream, gradient, of_x);
  const auto loss = [&] { return sum_of_products(gate.scores(parameters, x), upstream); };
  check_gradient(parameters, gradient, 80, loss);
  check_gradient(x, of_x, 21, loss);
}

TEST_CASE("experts: the balance loss is 1 for equal use and its gradient agrees") {
  const kernels::expert_gate gate(4, {3, 2});
  const std::vector<float> level(2 * 5);
  std::vector<std::vector<kernels::expert_place>> even{{{0, 0}, {1, 1}, {2, 0}},
                                                       {{0, 1}, {1, 0}, {2, 1}}};
  CHECK(gate.balance(level, even, 1, {}) == doctest::Approx(1));
  auto scores = normals(5, 10);
  std::vector<std::vector<kernels::expert_place>> uneven{{{0, 0}, {1, 0}}, {{0, 1}, {0, 0}}};
  std::vector<float> gradient(10);
  gate.balance(scores, uneven, 3, gradient);
  check_gradient(scores, gradient, 10, [&] { return 3 * gate.balance(scores, uneven, 1, {}); });
}

TEST_CASE("experts: the softmax runs over the answers and all failures give zeros") {
  const double logits[] = {1, 50, 2};
  const auto weights = kernels::softmax_of_answers(logits, {true, false, true});
  CHECK(weights[0] == doctest::Approx(1 / (1 + std::exp(1.0))));
  CHECK(weights[1] == 0);
  CHECK(weights[0] + weights[2] == doctest::Approx(1));
  CHECK(kernels::softmax_of_answers(logits, {false, false, false}) == std::vector<double>{0, 0, 0});
}

TEST_CASE("experts: all experts without failures are the dense mixture") {
  small_network small({2, 3});
  mixture_pass pass(small.net, small.parameters, small.samples);
  small.forward(pass, [](std::size_t, std::size_t) { return false; });
  // The dense mixture by its formula, row by row.
  auto x =
      small.ends->enter(small.net.of_ends(std::span<const float>(small.parameters)), small.samples);
  for (std::size_t l = 0; l < 2; ++l) {
    const auto gate = small.net.of_gate(std::span<const float>(small.parameters), l);
    const auto scores = small.net.gate().scores(gate, x);
    auto next = x;
    for (std::size_t n = 0; n < 5; ++n) {
      std::vector<double> logits;
      double sum = 0;
      for (std::size_t e = 0; e < small.count; ++e) {
        const auto place = small.place_of(e);
        logits.push_back(scores[n * 5 + place[0]] + scores[n * 5 + 2 + place[1]]);
        sum += std::exp(logits.back());
      }
      for (std::size_t e = 0; e < small.count; ++e) {
        const auto y =
            small.block->forward(small.experts[l * small.count + e], std::span(x).subspan(n * 8, 8))
                .value();
        for (std::size_t i = 0; i < 8; ++i)
          next[n * 8 + i] += static_cast<float>(std::exp(logits[e]) / sum * y[i]);
      }
    }
    x = next;
  }
  REQUIRE(pass.layer() == 2);
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(pass.input()[i] == doctest::Approx(x[i]).epsilon(1e-6));
}

TEST_CASE("experts: the probabilities of all experts are the softmax of their logits") {
  const kernels::expert_gate gate(4, {3, 2});
  auto scores = normals(6, 5);
  double sum = 0, most = 0;
  for (std::uint32_t i = 0; i < 3; ++i)
    for (std::uint32_t k = 0; k < 2; ++k) sum += std::exp(gate.logit(scores, {i, k}));
  for (std::uint32_t i = 0; i < 3; ++i)
    for (std::uint32_t k = 0; k < 2; ++k) {
      const auto p = gate.probability(scores, {i, k});
      CHECK(p == doctest::Approx(std::exp(gate.logit(scores, {i, k})) / sum));
      most += p;
    }
  CHECK(most == doctest::Approx(1));
  std::vector<float> gradient(5);
  gate.probability_backward(scores, {2, 1}, 3, gradient);
  check_gradient(scores, gradient, 5, [&] { return 3 * gate.probability(scores, {2, 1}); });
}

TEST_CASE("experts: a switch gate with one expert for a row learns from the loss") {
  // Each row gets one expert, and some get no answer.
  const auto fails = [](std::size_t row, std::size_t e) { return row == 3 || e != row % 4; };
  const auto gradient_of = [&](small_network& small) {
    mixture_pass pass(small.net, small.parameters, small.samples);
    small.forward(pass, fails);
    small.backward(pass);
    CHECK(pass.unanswered() == 2);
    return pass.gradient();
  };
  small_network plain({2, 2}), switching({2, 2}, 0, gate_kind::switching);
  for (const float v : plain.net.of_gate(std::span<const float>(gradient_of(plain)), 1))
    CHECK(std::abs(v) < 1e-6F);
  const auto gradient = gradient_of(switching);
  check_gradient(switching.parameters, gradient, 120, [&] {
    mixture_pass again(switching.net, switching.parameters, switching.samples);
    switching.forward(again, fails);
    return again.leave().loss;
  });
  double size = 0;
  for (const float v : switching.net.of_gate(std::span<const float>(gradient), 1))
    size = std::max(size, std::abs(static_cast<double>(v)));
  CHECK(size > 1e-4);
  for (const std::size_t e : {std::size_t{1}, std::size_t{6}})
    check_gradient(switching.experts[e], switching.gradients[e], 40, [&] {
      mixture_pass again(switching.net, switching.parameters, switching.samples);
      switching.forward(again, fails);
      return again.leave().loss;
    });
}

TEST_CASE("experts: the gradients of a pass with failures agree with differences") {
  small_network small({2, 2}, 0.1);
  // The first row has no answer in any layer; the others lack some experts.
  const auto fails = [](std::size_t row, std::size_t e) { return row == 0 || (row + e) % 4 == 0; };
  mixture_pass pass(small.net, small.parameters, small.samples);
  small.forward(pass, fails);
  small.backward(pass);
  CHECK(pass.unanswered() == 2);
  const auto loss = [&] {
    mixture_pass again(small.net, small.parameters, small.samples);
    small.forward(again, fails);
    const auto out = again.leave().loss;
    while (!again.is_over()) again.retreat(); // only for the balance loss
    return out + 0.1 * 2 * again.balance();
  };
  for (const float v : pass.gradient()) REQUIRE(std::isfinite(v));
  check_gradient(small.parameters, pass.gradient(), 120, loss);
  for (const std::size_t e : {std::size_t{1}, std::size_t{6}})
    check_gradient(small.experts[e], small.gradients[e], 40, loss);
}

TEST_CASE("experts: AMSGrad agrees with its formula over several steps") {
  const kernels::amsgrad_config config;
  std::vector<float> x{1}, state(3);
  double m = 0, s = 0, most = 0, expected = 1;
  int t = 0;
  for (const float g : {2.0F, -0.5F, 0.1F, 0.1F}) {
    kernels::amsgrad_step(config, static_cast<std::uint64_t>(++t), std::span(&g, 1), x, state);
    m = 0.9 * m + 0.1 * g;
    s = 0.999 * s + 0.001 * g * g;
    most = std::max(most, s);
    expected -=
        1e-3 * m / (1 - std::pow(0.9, t)) / (std::sqrt(most / (1 - std::pow(0.999, t))) + 1e-8);
    CHECK(x[0] == doctest::Approx(expected).epsilon(1e-5));
  }
}
