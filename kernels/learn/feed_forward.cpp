#include "kernels/learn/feed_forward.hpp"

#include "kernels/base/check.hpp"
#include "kernels/dense.hpp"
#include "kernels/learn/argument_check.hpp"

#include <algorithm>

namespace shoal::learn {

namespace {

using std::size_t;

/// A layer in the flat vector: weights [inputs, outputs], biases, and gain and bias of its norm.
struct layer_place {
  size_t inputs = 0, outputs = 0, at = 0;
  bool has_norm = false;

  size_t weights() const { return inputs * outputs; }
  size_t size() const { return weights() + outputs * (has_norm ? 3 : 1); }
  template <class Span>
  Span w(Span all) const {
    return all.subspan(at, weights());
  }
  template <class Span>
  Span b(Span all) const {
    return all.subspan(at + weights(), outputs);
  }
  template <class Span>
  Span gain(Span all) const {
    return all.subspan(at + weights() + outputs, outputs);
  }
  template <class Span>
  Span bias(Span all) const {
    return all.subspan(at + weights() + 2 * outputs, outputs);
  }
};

void relu(std::span<float> x) {
  for (auto& v : x) v = std::max(v, 0.0F);
}
/// The gradient passes where the output is above 0.
void relu_backward(std::span<const float> out, std::span<float> gradient) {
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i] <= 0) gradient[i] = 0;
}

class feed_forward final : public expert_block {
public:
  explicit feed_forward(size_t width) : width_(width) {
    SHOAL_CHECK(width > 0, "an expert has a width");
    up_ = {width, 4 * width, 0, true};
    across_ = {4 * width, 4 * width, up_.size(), true};
    down_ = {4 * width, width, across_.at + across_.size(), false};
  }

  size_t width() const noexcept override { return width_; }
  size_t parameter_count() const noexcept override { return down_.at + down_.size(); }

  std::vector<float> initial_parameters(std::uint64_t seed) const override {
    std::vector<float> out(parameter_count());
    std::uint64_t number = 0;
    for (const auto* layer : {&up_, &across_, &down_}) {
      kernels::initial_linear(seed, ++number, layer->inputs, layer->w(std::span(out)),
                              layer->b(std::span(out)));
      if (layer->has_norm) std::ranges::fill(layer->gain(std::span(out)), 1.0F);
    }
    return out;
  }

  result<std::vector<float>> forward(std::span<const float> parameters,
                                     std::span<const float> x) const override {
    if (const auto check = fits(parameters, x); !check.ok()) return check.why();
    return pass(parameters, x).y;
  }

  result<std::vector<float>> backward(std::span<const float> parameters, std::span<const float> x,
                                      std::span<const float> gradient_out,
                                      std::span<float> gradient_sum) const override {
    auto check = fits(parameters, x);
    check.size("gradient of the output", gradient_out.size(), x.size())
        .size("sum", gradient_sum.size(), parameter_count());
    if (!check.ok()) return check.why();
    const auto kept = pass(parameters, x);
    std::vector<float> of_b(kept.b.size()), of_a(kept.a.size()), of_x(x.size());
    kernels::linear_backward(down_.w(parameters), down_.inputs, kept.b, gradient_out,
                             down_.w(gradient_sum), down_.b(gradient_sum), of_b);
    back(across_, parameters, kept.a, kept.raw_b, kept.b, of_b, gradient_sum, of_a);
    back(up_, parameters, x, kept.raw_a, kept.a, of_a, gradient_sum, of_x);
    return of_x;
  }

private:
  struct activity {
    std::vector<float> raw_a, a, raw_b, b, y;
  };

  argument_check fits(std::span<const float> parameters, std::span<const float> x) const {
    argument_check out;
    out.size("vector of the expert's parameters", parameters.size(), parameter_count())
        .size("last row of activations", x.size() % width_, 0);
    return out;
  }

  static void through(const layer_place& layer, std::span<const float> parameters,
                      std::span<const float> x, std::vector<float>& raw, std::vector<float>& out) {
    raw.resize(x.size() / layer.inputs * layer.outputs);
    kernels::linear(layer.w(parameters), layer.b(parameters), layer.inputs, x, raw);
    out.resize(raw.size());
    kernels::layer_norm(layer.gain(parameters), layer.bias(parameters), raw, out);
    relu(out);
  }

  activity pass(std::span<const float> parameters, std::span<const float> x) const {
    activity out;
    through(up_, parameters, x, out.raw_a, out.a);
    through(across_, parameters, out.a, out.raw_b, out.b);
    out.y.resize(x.size());
    kernels::linear(down_.w(parameters), down_.b(parameters), down_.inputs, out.b, out.y);
    return out;
  }

  /// Through a layer with its norm, and its activation `out`. `gradient` is that of `out`.
  static void back(const layer_place& layer, std::span<const float> parameters,
                   std::span<const float> x, std::span<const float> raw, std::span<const float> out,
                   std::span<float> gradient, std::span<float> gradient_sum,
                   std::span<float> gradient_x) {
    relu_backward(out, gradient);
    std::vector<float> of_raw(raw.size());
    kernels::layer_norm_backward(layer.gain(parameters), raw, gradient, layer.gain(gradient_sum),
                                 layer.bias(gradient_sum), of_raw);
    kernels::linear_backward(layer.w(parameters), layer.inputs, x, of_raw, layer.w(gradient_sum),
                             layer.b(gradient_sum), gradient_x);
  }

  size_t width_;
  layer_place up_, across_, down_;
};

} // namespace

std::shared_ptr<const expert_block> make_feed_forward(std::size_t width) {
  return std::make_shared<const feed_forward>(width);
}

} // namespace shoal::learn
