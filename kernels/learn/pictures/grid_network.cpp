#include "kernels/learn/pictures/grid_network.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/pictures/matrix_product.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shoal::learn {

namespace {

/// Calls use(place, neighbour, which) for each of the 3 x 3 neighbours inside of the grid.
template <class Use>
void each_neighbour(std::size_t side, Use use) {
  for (std::size_t y = 0; y < side; ++y)
    for (std::size_t x = 0; x < side; ++x)
      for (std::size_t which = 0; which < 9; ++which) {
        const auto ny = y + which / 3, nx = x + which % 3; // one too large
        if (ny == 0 || nx == 0 || ny > side || nx > side) continue;
        use(y * side + x, (ny - 1) * side + nx - 1, which);
      }
}

/// The channels of each place's neighbourhood side by side: [rows, 9 * channels].
std::vector<float> neighbourhoods(std::span<const float> x, std::size_t side,
                                  std::size_t channels) {
  std::vector<float> out(9 * x.size());
  const auto places = side * side;
  for (std::size_t first = 0; first < x.size() / channels; first += places)
    each_neighbour(side, [&](std::size_t place, std::size_t neighbour, std::size_t which) {
      std::copy_n(x.data() + (first + neighbour) * channels, channels,
                  out.data() + ((first + place) * 9 + which) * channels);
    });
  return out;
}

/// The gradient of x from that of its neighbourhoods.
std::vector<float> neighbourhoods_back(std::span<const float> gradient, std::size_t side,
                                       std::size_t channels) {
  std::vector<float> out(gradient.size() / 9);
  const auto places = side * side;
  for (std::size_t first = 0; first < out.size() / channels; first += places)
    each_neighbour(side, [&](std::size_t place, std::size_t neighbour, std::size_t which) {
      const auto* from = gradient.data() + ((first + place) * 9 + which) * channels;
      auto* to = out.data() + (first + neighbour) * channels;
      for (std::size_t c = 0; c < channels; ++c) to[c] += from[c];
    });
  return out;
}

std::vector<float> relu(std::vector<float> x) {
  for (auto& value : x) value = std::max(value, 0.0F);
  return x;
}

/// The gradient before relu(), from that after it and the values after it.
std::vector<float> relu_back(std::vector<float> gradient, std::span<const float> after) {
  for (std::size_t i = 0; i < gradient.size(); ++i)
    if (after[i] <= 0) gradient[i] = 0;
  return gradient;
}

void add(std::vector<float>& to, const std::vector<float>& what) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += what[i];
}

} // namespace

grid_network::grid_network(const grid_shape& shape) : shape_(shape) {
  const auto add_layer = [&](std::size_t reach, std::size_t inputs, std::size_t outputs) {
    layers_.push_back({parameter_count_, reach, inputs, outputs});
    parameter_count_ += layers_.back().weights() + outputs;
  };
  add_layer(shape.reach, shape.inputs, shape.hidden);
  for (std::size_t b = 0; b < shape.blocks; ++b) {
    add_layer(3, shape.hidden, shape.hidden);
    add_layer(1, shape.hidden, shape.hidden);
  }
  add_layer(1, shape.hidden, shape.outputs);
  SHOAL_CHECK(parameter_count_ == shape.parameters(), "the layers have all parameters");
}

void grid_network::initialize(rng& random, std::span<float> parameters) const {
  SHOAL_CHECK(parameters.size() == parameter_count_, "a value for each parameter");
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& one = layers_[i];
    const bool ends_block = i > 0 && i % 2 == 0;
    const double most =
        ends_block ? 0 : 1 / std::sqrt(static_cast<double>(one.reach * one.reach * one.inputs));
    for (auto& value : parameters.subspan(one.offset, one.weights() + one.outputs))
      value = static_cast<float>(random.uniform(-most, most));
  }
}

std::vector<float> grid_network::apply(const layer& which, std::span<const float> parameters,
                                       std::span<const float> x) const {
  const auto rows = x.size() / which.inputs;
  const auto* weights = parameters.data() + which.offset;
  std::vector<float> out(rows * which.outputs);
  for (std::size_t r = 0; r < rows; ++r)
    std::copy_n(weights + which.weights(), which.outputs, out.data() + r * which.outputs);
  if (which.reach == 1) {
    add_product(x.data(), weights, rows, which.inputs, which.outputs, out.data());
  } else {
    const auto wide = neighbourhoods(x, shape_.side, which.inputs);
    add_product(wide.data(), weights, rows, 9 * which.inputs, which.outputs, out.data());
  }
  return out;
}

std::vector<float> grid_network::apply_back(const layer& which, std::span<const float> parameters,
                                            std::span<const float> x,
                                            std::span<const float> gradient_out,
                                            std::span<float> gradient_sum) const {
  const auto rows = x.size() / which.inputs, width = which.reach * which.reach * which.inputs;
  const auto wide =
      which.reach == 1 ? std::vector<float>{} : neighbourhoods(x, shape_.side, which.inputs);
  const auto* in = which.reach == 1 ? x.data() : wide.data();
  auto* sum = gradient_sum.data() + which.offset;

  std::vector<float> turned(rows * width);
  transpose(in, rows, width, turned.data());
  add_product(turned.data(), gradient_out.data(), width, rows, which.outputs, sum);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < which.outputs; ++o)
      sum[which.weights() + o] += gradient_out[r * which.outputs + o];

  std::vector<float> weights(which.weights()), out(rows * width);
  transpose(parameters.data() + which.offset, width, which.outputs, weights.data());
  add_product(gradient_out.data(), weights.data(), rows, which.outputs, width, out.data());
  return which.reach == 1 ? out : neighbourhoods_back(out, shape_.side, which.inputs);
}

std::vector<float> grid_network::forward(std::span<const float> parameters,
                                         std::span<const float> x, grid_pass* kept) const {
  SHOAL_CHECK(parameters.size() == parameter_count_ &&
                  x.size() % (shape_.places() * shape_.inputs) == 0,
              "a network reads whole pictures");
  const auto through = [&](const layer& which, std::vector<float> in) {
    auto out = apply(which, parameters, in);
    if (kept != nullptr) kept->inputs.push_back(std::move(in));
    return out;
  };
  auto out = through(layers_.front(), {x.begin(), x.end()});
  for (std::size_t i = 1; i + 1 < layers_.size(); i += 2)
    add(out, through(layers_[i + 1], relu(through(layers_[i], relu(out)))));
  return through(layers_.back(), relu(std::move(out)));
}

std::vector<float> grid_network::backward(std::span<const float> parameters, const grid_pass& kept,
                                          std::span<const float> gradient_out,
                                          std::span<float> gradient_sum) const {
  SHOAL_CHECK(kept.inputs.size() == layers_.size() && gradient_sum.size() == parameter_count_,
              "a backward pass follows a forward pass");
  const auto back = [&](std::size_t i, std::span<const float> gradient) {
    return apply_back(layers_[i], parameters, kept.inputs[i], gradient, gradient_sum);
  };
  const auto last = layers_.size() - 1;
  auto out = relu_back(back(last, gradient_out), kept.inputs[last]);
  for (auto i = last; i > 1; i -= 2) {
    const auto inner = relu_back(back(i - 1, out), kept.inputs[i - 1]);
    add(out, relu_back(back(i - 2, inner), kept.inputs[i - 2]));
  }
  return back(0, out);
}

} // namespace shoal::learn
