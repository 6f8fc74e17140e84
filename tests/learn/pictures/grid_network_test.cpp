// kernels/learn/pictures/matrix_product and grid_network.
#include "kernels/base/rng.hpp"
#include "kernels/learn/pictures/grid_network.hpp"
#include "kernels/learn/pictures/matrix_product.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

std::vector<float> drawn(std::size_t count, std::uint64_t seed) {
  auto random = stream(seed, "grid_network_test");
  std::vector<float> out(count);
  for (auto& value : out) value = static_cast<float>(random.normal());
  return out;
}

double product(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

} // namespace

TEST_CASE("a product in tiles has the bits of three plain loops") {
  for (const std::size_t rows : {1, 6, 7, 13})
    for (const std::size_t inner : {1, 3, 64})
      for (const std::size_t columns : {1, 16, 17, 40}) {
        const auto a = drawn(rows * inner, 1), b = drawn(inner * columns, 2);
        auto out = drawn(rows * columns, 3), expected = out;
        for (std::size_t r = 0; r < rows; ++r)
          for (std::size_t c = 0; c < columns; ++c) {
            float sum = 0;
            for (std::size_t i = 0; i < inner; ++i) sum += a[r * inner + i] * b[i * columns + c];
            expected[r * columns + c] += sum;
          }
        add_product(a.data(), b.data(), rows, inner, columns, out.data());
        CHECK(out == expected);
        std::vector<float> turned(a.size()), again(a.size());
        transpose(a.data(), rows, inner, turned.data());
        CHECK(turned[inner > 1 ? rows : 0] == a[inner > 1 ? 1 : 0]);
        transpose(turned.data(), inner, rows, again.data());
        CHECK(again == a);
      }
}

TEST_CASE("a convolution of a grid sees the nine places around each place and zeros outside") {
  // One channel and no blocks: relu sees 1 + the sum of the neighbours, each times its weight.
  const grid_network net({3, 3, 1, 1, 0, 1});
  std::vector<float> parameters{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 0};
  REQUIRE(net.parameter_count() == parameters.size());
  const std::vector<float> x{1, 0, 0, 0, 0, 0, 0, 0, 10};
  const auto out = net.forward(parameters, x);
  // The place (1, 1) has the 1 at its upper left (weight 1) and the 10 at its lower right (9).
  const std::vector<float> expected{1 + 5, 1 + 4, 1, 1 + 2, 1 + 1 + 90, 1 + 80, 1, 1 + 60, 1 + 50};
  CHECK(out == expected);
}

TEST_CASE("the gradient of a grid network is that of finite differences") {
  for (const std::size_t reach : {1, 3}) {
    const grid_network net({3, reach, 2, 5, 2, 4});
    auto parameters = drawn(net.parameter_count(), 4);
    for (auto& value : parameters) value *= 0.3F;
    auto x = drawn(2 * 9 * 2, 5);
    const auto upstream = drawn(2 * 9 * 4, 6);
    grid_pass kept;
    net.forward(parameters, x, &kept);
    std::vector<float> gradient(parameters.size());
    const auto of_x = net.backward(parameters, kept, upstream, gradient);
    const auto check = [&](std::vector<float>& values, const std::vector<float>& found) {
      double wrong = 0, size = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const float before = values[i];
        constexpr float step = 1e-3F;
        values[i] = before + step;
        const auto above = product(net.forward(parameters, x), upstream);
        values[i] = before - step;
        const auto below = product(net.forward(parameters, x), upstream);
        values[i] = before;
        const double wanted = (above - below) / (2 * static_cast<double>(step));
        wrong +=
            (wanted - static_cast<double>(found[i])) * (wanted - static_cast<double>(found[i]));
        size += wanted * wanted;
      }
      CHECK(std::sqrt(wrong / size) < 0.01); // a step crosses a few corners of relu
    };
    check(parameters, gradient);
    check(x, of_x);
  }
}

TEST_CASE("a drawn grid network begins with blocks that change nothing") {
  const grid_network with({2, 1, 3, 8, 2, 3}), without({2, 1, 3, 8, 0, 3});
  std::vector<float> parameters(with.parameter_count());
  auto random = stream(1, "grid");
  with.initialize(random, parameters);
  const std::size_t first = (3 + 1) * 8, last = (8 + 1) * 3;
  std::vector<float> ends(parameters.begin(), parameters.begin() + first);
  ends.insert(ends.end(), parameters.end() - last, parameters.end());
  const auto x = drawn(4 * 3, 7);
  CHECK(with.forward(parameters, x) == without.forward(ends, x));
  CHECK(parameters[0] != 0);
}
